package submoduletest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

func TestStar(t *testing.T) { Run(t, star{}) }

// broken is the star with one thing changed.
type broken struct {
	star
	algorithms func(a *submodules.Algorithm)
	lower      func(e *submodules.Emitter, c *submodules.Call) (handled bool, err error)
}

func (b broken) Algorithms() []submodules.Algorithm {
	all := b.star.Algorithms()
	if b.algorithms != nil {
		b.algorithms(&all[0])
	}
	return all
}

func (b broken) Lower(e *submodules.Emitter, c *submodules.Call) error {
	if b.lower != nil {
		if handled, err := b.lower(e, c); handled {
			return err
		}
	}
	return b.star.Lower(e, c)
}

// named is broken under another name than the star that helps it.
type named struct{ broken }

func (named) Name() string { return "broken" }

// TestBrokenSubmodules: the suite finds each defect.
func TestBrokenSubmodules(t *testing.T) {
	twice := 0
	for _, tc := range []struct {
		name string
		sub  broken
		want string
	}{
		{"no doc", broken{algorithms: func(a *submodules.Algorithm) { a.Doc = "" }}, `Doc is "" and Source "none", want one line each`},
		{"no source", broken{algorithms: func(a *submodules.Algorithm) { a.Source = "" }}, `Source "", want one line each`},
		{"bad name", broken{algorithms: func(a *submodules.Algorithm) { a.Name = "Star 1" }}, `a plan can't name the algorithm "Star 1"`},
		{"no operations", broken{algorithms: func(a *submodules.Algorithm) { a.Ops = nil }}, "broken/star: no operations"},
		{
			"does more than it says",
			broken{algorithms: func(a *submodules.Algorithm) { a.Ops = []tasks.Collective{tasks.Bcast} }},
			"broken/star: reduce is not declared: got error it emits steps",
		},
		{
			"does less than it says",
			broken{lower: func(_ *submodules.Emitter, c *submodules.Call) (bool, error) {
				if c.Kind.Op != tasks.Allreduce {
					return false, nil
				}
				return true, fmt.Errorf("%v: %w", c.Kind.Op, submodules.ErrUnsupported)
			}},
			"lower sar#0 with broken/star: allreduce: not supported",
		},
		{
			"says it does what is no task",
			broken{algorithms: func(a *submodules.Algorithm) { a.Ops = append(a.Ops, tasks.Barrier) }},
			"barrier: submoduletest knows no request",
		},
		{
			"believes that rank 0 leads",
			broken{lower: func(e *submodules.Emitter, c *submodules.Call) (bool, error) {
				if c.Kind.Op != tasks.Bcast || c.Me == c.Group.Leader {
					return false, nil
				}
				e.Recv(c.Group.Ranks[0], c.Dst)
				return true, nil
			}},
			`led by 1: bcast 1 i32 root 1 on 2 ranks with plan "shape=han,fs=all,w=1,s=star,sb=broken/star": rank 0 talks to rank 0`,
		},
		{
			"leaves a last element out",
			broken{lower: func(e *submodules.Emitter, c *submodules.Call) (bool, error) {
				if c.Kind.Op == tasks.Bcast {
					c.Dst.Len &^= 7
				}
				return false, nil
			}},
			"byte 0 holds nothing",
		},
		{
			"combines in the order of arrival",
			broken{lower: func(e *submodules.Emitter, c *submodules.Call) (bool, error) {
				if c.Kind.Op != tasks.Reduce || c.Me != c.Group.Leader || len(c.Group.Ranks) != 2 {
					return false, nil
				}
				in := e.Scratch(c.Dst.Len)
				other := c.Group.Ranks[1-c.Me]
				e.Reduce(c.Dst, c.Src, in, e.Recv(other, in))
				return true, nil
			}},
			"led by 1: allreduce 1 i32 first on 2 ranks",
		},
		{
			"restricts what it can do, and does it all the same",
			broken{algorithms: func(a *submodules.Algorithm) { a.Needs = []submodules.Restriction{submodules.NeedsRootFirst} }},
			"",
		},
		{
			"has a memory",
			broken{lower: func(e *submodules.Emitter, c *submodules.Call) (bool, error) {
				if twice++; twice%2 == 0 {
					e.Scratch(64)
				}
				return false, nil
			}},
			"lowered twice, the steps differ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := problems(named{tc.sub}, tc.want)
			if tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, want %q in it", text, tc.want)
			}
		})
	}
}

// problems is what Run would report, up to the problem that is looked for; all if there is none.
func problems(s submodules.Submodule, sought string) string {
	checks := []func() error{func() error { return declares(s) }, func() error { return refuses(s) }}
	for _, a := range s.Algorithms() {
		for _, op := range a.Ops {
			u := underTest{sub: s, algo: a, op: op, most: 4}
			checks = append(checks, u.groups, u.levels)
		}
	}
	var all []string
	for _, check := range checks {
		if err := check(); err != nil {
			all = append(all, err.Error())
			if sought != "" && strings.Contains(err.Error(), sought) {
				break
			}
		}
	}
	return strings.Join(all, "\n")
}
