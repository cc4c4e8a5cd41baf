package verify

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// tierflow is the command with what is in this package.
var tierflow = kittest.Of("tierflow", Command)

func TestVerifyCatalogue(t *testing.T) {
	r := kittest.Decode[verification](t, tierflow.Succeeds(t, "verify", "all", "--topo", "2x2", "--bytes", "12", "--json"))
	if r.Checked < 100 || r.Failed > 0 || r.Steps == 0 || r.Skipped["unsupported"] == 0 {
		t.Errorf("%+v: want many cases, and sm between nodes to be skipped", r)
	}
	if sum := r.Checked + r.Skipped["unsupported"] + r.Skipped["too large"] + r.Skipped["not for this request"]; sum != r.Cases {
		t.Errorf("%+v: checked and skipped are %d", r, sum)
	}
}

// The same seed draws the same cases, whoever checks them first; another draws
// others.
func TestVerifySeeds(t *testing.T) {
	report := func(seed string) verification {
		r := kittest.Decode[verification](t, tierflow.Succeeds(t, "verify", "all", "--random", "60", "--max-ranks", "12", "--seed", seed, "--json"))
		r.Seconds = 0
		return r
	}
	first := report("5")
	if diff := cmp.Diff(first, report("5")); diff != "" || *first.Seed != 5 {
		t.Errorf("seed %d twice: %s", *first.Seed, diff)
	}
	if first.Steps == report("6").Steps {
		t.Error("another seed draws the same cases")
	}
}

// A fixed machine, plan or collective is what random cases have.
func TestVerifyNarrowedDraws(t *testing.T) {
	v := &verifying{reg: all.Submodules(), maxRanks: 64, colls: []tasks.Collective{tasks.Allreduce}}
	var err error
	if v.forced, err = tasks.ParseForced("bcast:w=7;allreduce:shape=han,w=3"); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if c := v.drawCase(i); c.Request.Coll != tasks.Allreduce || c.Plan.Shape != tasks.Han || c.Plan.Window != 3 {
			t.Fatalf("drew %v", c)
		}
	}
}

// forgetful is sm with members that never copy what is broadcast.
type forgetful struct{ submodules.Submodule }

func (f forgetful) Lower(e *submodules.Emitter, c *submodules.Call) error {
	if c.Kind.Op != tasks.Bcast || c.Me == c.Group.Leader {
		return f.Submodule.Lower(e, c)
	}
	for _, n := range c.Pieces() {
		told := e.Await(c.Group.Lead())
		if n == 0 {
			return nil
		}
		e.Notify(c.Group.Lead(), tasks.Span{}, told)
	}
	return nil
}

// panicking is sm with a bug of another kind.
type panicking struct{ submodules.Submodule }

func (panicking) Lower(*submodules.Emitter, *submodules.Call) error { panic("index out of range") }

// withSM is the command with sm broken.
func withSM(spoiled func(sm submodules.Submodule) submodules.Submodule) kittest.Runner {
	reg := slices.Clone(all.Submodules())
	for i, s := range reg {
		if s.Name() == submodules.SM {
			reg[i] = spoiled(s)
		}
	}
	return func() *cobra.Command { return kit.NewRoot("tierflow", "", Command(reg)) }
}

// A broken submodule is found, and the command that is printed finds it again.
func TestVerifyFindsBrokenSubmodule(t *testing.T) {
	for _, line := range []string{
		"verify bcast --topo 2x3 --bytes 400",
		"verify bcast --random 100",
		"verify allreduce --topo 2x3 --plan shape=han,s=sm --bytes 4000",
	} {
		forget := func(sm submodules.Submodule) submodules.Submodule { return forgetful{sm} }
		first := broken(t, withSM(forget), strings.Fields(line))
		again := broken(t, withSM(forget), first)
		if !slices.Equal(withoutPlan(first), withoutPlan(again)) { // a plan is completed
			t.Errorf("%s: found %q, and with that %q", line, first, again)
		}
		if topo := first[slices.Index(first, "--topo")+1]; !slices.Contains([]string{"2", "1x2", "1x2x1", "1x1x2"}, topo) {
			t.Errorf("%s: smallest case is on %s; two ranks would do", line, topo)
		}
	}
	broken(t, withSM(func(sm submodules.Submodule) submodules.Submodule { return panicking{sm} }), []string{"verify", "barrier", "--topo", "2x2"})
}

func withoutPlan(args []string) []string {
	at := slices.Index(args, "--plan")
	return slices.Delete(slices.Clone(args), at, at+2)
}

// broken runs a verification that fails and returns the printed command's
// arguments.
func broken(t *testing.T, tierflow kittest.Runner, args []string) []string {
	t.Helper()
	s := tierflow.Run(t, args...)
	command := regexp.MustCompile(`(?m)^  tierflow (verify .*)$`).FindStringSubmatch(s.Errors)
	if s.Status != 1 || command == nil || !strings.Contains(s.Out, "failed") {
		t.Fatalf("%v: status %d, output %q, errors %q; want status 1 and a command", args, s.Status, s.Out, s.Errors)
	}
	return strings.Fields(strings.ReplaceAll(command[1], "'", ""))
}

// What can't be written as a spec is written as JSON.
func TestVerifyCommandKeepsTopology(t *testing.T) {
	v := &verifying{reg: all.Submodules(), maxRanks: 40, colls: tasks.Requestable()}
	specs := 0
	for i := range 100 {
		c := v.drawCase(i)
		p := kit.Problem{Topo: topoArgument(c.Topology)}
		back, err := p.ReadTopology()
		if err != nil || !back.Equal(c.Topology) {
			t.Fatalf("%s: %v, %v, want %v", p.Topo, back, err, c.Topology)
		}
		if p.Topo[0] != '{' {
			specs++
		}
	}
	if specs == 0 || specs == 100 {
		t.Errorf("%d of 100 topologies have a spec; both kinds should occur", specs)
	}
}

func TestVerifyOfNothingFails(t *testing.T) {
	s := tierflow.Run(t, "verify", "bcast", "--plan", "i=sm")
	if s.Status != 1 || !strings.Contains(s.Errors, "nothing was checked") || !strings.Contains(s.Errors, "not supported") {
		t.Errorf("%+v, want status 1 and the reason", s)
	}
	if s := tierflow.Run(t, "verify", "bcast", "--topo", "40x2"); s.Status != 1 || !strings.Contains(s.Errors, "at most 64") {
		t.Errorf("%+v, want status 1 and the limit", s)
	}
}

// verify checks the table's plan, once for each request, in place of all plans.
func TestVerifyTable(t *testing.T) {
	args := strings.Fields("verify reduce --topo 2x2 --bytes 64 --json --in-place=false --non-commutative=false --root 0 --table " + kittest.Path(t, "testdata", "tables", "recorded.json"))
	if v := kittest.Decode[verification](t, tierflow.Succeeds(t, args...)); v.Checked != 1 || v.Cases != 1 {
		t.Errorf("%+v, want one case", v)
	}
}

// Counts that differ between two ranks are checked with buffers apart only.
func TestVerifyInPlace(t *testing.T) {
	line := "verify alltoall --topo 2 --plan shape=flat --json --counts "
	one := kittest.Decode[verification](t, tierflow.Succeeds(t, strings.Fields(line+"1,0;3,2")...))
	both := kittest.Decode[verification](t, tierflow.Succeeds(t, strings.Fields(line+"1,3;3,2")...))
	if one.Checked != 1 || both.Checked != 2 {
		t.Errorf("%d cases apart, %d of counts that are equal both ways; want 1 and 2", one.Checked, both.Checked)
	}
	tierflow.Refuses(t, "--in-place", strings.Fields(line+"1,0;3,2 --in-place")...)
}

// A case that is too large is refused with what would help.
func TestTooLarge(t *testing.T) {
	for args, want := range map[string]string{
		"allreduce --topo 17x4 --plan shape=han":                       "at most 64, see --max-ranks",
		"allreduce --topo 16x4 --bytes 4MiB --plan shape=han,fs=16KiB": "over 50000, and no flag raises that: give fewer bytes or larger segments",
	} {
		s := tierflow.Run(t, append([]string{"verify"}, strings.Fields(args)...)...)
		if s.Status == 0 || !strings.Contains(s.Errors, want) {
			t.Errorf("%s: status %d, %q; want %q", args, s.Status, s.Errors, want)
		}
	}
}
