package submodules_test

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// scripted is a submodule that does what a test says.
type scripted struct {
	algorithms []submodules.Algorithm
	lower      func(e *submodules.Emitter, c *submodules.Call) error
}

func (scripted) Name() string { return "scripted" }
func (scripted) Doc() string  { return "what a test says" }

func (scripted) Reach() submodules.Reach                                 { return submodules.Anywhere }
func (s scripted) Algorithms() []submodules.Algorithm                    { return s.algorithms }
func (s scripted) Lower(e *submodules.Emitter, c *submodules.Call) error { return s.lower(e, c) }

// plain declares one algorithm for bcast without an inner segment.
func plain(lower func(e *submodules.Emitter, c *submodules.Call) error) scripted {
	return scripted{[]submodules.Algorithm{{Name: "plain", Ops: []tasks.Collective{tasks.Bcast}}}, lower}
}

// TestCompileErrors: an impossible choice is refused on all ranks alike, also on
// those without tasks of that kind. The text lists what there is.
func TestCompileErrors(t *testing.T) {
	first := tasks.UserOp("first", false, func(a, _ uint8) uint8 { return a })
	ordered := allreduce(4)
	ordered.Op = first
	reg := append(all.Submodules(), plain(func(*submodules.Emitter, *submodules.Call) error { return errors.New("no steps today") }))
	for _, tc := range []struct {
		name, plan  string
		r           tasks.Request
		root        levels.Rank
		want        string
		unsupported bool
	}{
		{
			"slots between nodes", "i=sm,s=sm", bcast(4, 0), 0,
			`ib=sm: sm works between ranks that share memory: not supported on level "network"; for bcast between nodes there is ` + reg.Offers(tasks.Bcast, false), true,
		},
		{"unknown submodule", "i=libnbc,s=sm", bcast(4, 0), 0, `ib=libnbc: unknown submodule "libnbc"; known are adapt, nbc, circulant, sm, solo, scripted`, false},
		{
			"unknown algorithm", "i=adapt,s=adapt/ring", bcast(4, 0), 0,
			"sb=adapt/ring: bcast by adapt/ring: not supported; for bcast there is " + reg.Offers(tasks.Bcast, true), true,
		},
		{
			"an operation that the algorithm doesn't do", "i=adapt,sr=scripted,sb=sm", allreduce(4), 0,
			"sr=scripted: reduce by scripted: not supported; for reduce there is " + reg.Offers(tasks.Reduce, true), true,
		},
		{"an inner segment for one without", "i=scripted/plain/2,s=sm", bcast(4, 0), 0, "ib=scripted/plain/2B: an inner segment for scripted/plain: not supported", true},
		{"no choice for a level", "s=sm", bcast(4, 0), 0, `ib: plan "shape=han,fs=4B,w=1,s=sm" chooses no submodule for level i`, false},
		{
			"rank order under a leader in the middle", "i=adapt,s=sm", ordered, 1,
			"ir=adapt: adapt/binomial does a non-commutative operation only when the leader is the group's lowest rank: not supported", true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			topo := tasktest.Topology(t, "2x2")
			p := tasktest.Plan(t, "shape=han,fs=4,w=1,"+tc.plan)
			h := topo.Hierarchy(tc.root)
			if tc.root != 0 { // a single group led by another
				h = topo.Flat(tc.root)
			}
			for rank := range levels.Rank(4) {
				_, err := submodules.CompileFor(tc.r, h, p, rank, reg)
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), tc.r.String()) {
					t.Errorf("rank %d: got error %v, want the request and %q", rank, err, tc.want)
				}
				if errors.Is(err, submodules.ErrUnsupported) != tc.unsupported {
					t.Errorf("rank %d: %v wraps ErrUnsupported: %v, want %v", rank, err, !tc.unsupported, tc.unsupported)
				}
				g, other := tasks.ExpandOn(tc.r, h, p, rank)
				if other == nil {
					other = reg.Supports(g)
				}
				if err == nil || other == nil || other.Error() != err.Error() {
					t.Errorf("rank %d: checked: got error %v, want %v", rank, other, err)
				}
			}
		})
	}
}

// TestRestrictionsAreOnReductions: what an algorithm can't do when it combines
// doesn't keep it from passing the result on.
func TestRestrictionsAreOnReductions(t *testing.T) {
	topo := tasktest.Topology(t, "4")
	p := tasktest.Plan(t, "shape=flat,fs=all,w=1,sr=adapt/inorderbinary,sb=adapt/binomial")
	r := allreduce(4)
	r.Op = tasks.UserOp("first", false, func(a, _ uint8) uint8 { return a })
	if _, err := submodules.CompileFor(r, topo.Flat(2), p, 0, all.Submodules()); err != nil {
		t.Error(err)
	}
}

// Groups of a power of two of ranks are what some allgathers need.
func TestRestrictedSizes(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allgather, Count: 4, Type: tasks.Uint8}
	p := tasktest.Plan(t, "shape=flat,fs=all,w=1,iag=nbc/recdoubling")
	for n := 2; n <= 9; n++ {
		topo := tasktest.Topology(t, fmt.Sprintf("%dx1", n))
		_, err := submodules.CompileFor(r, topo.Flat(0), p, 0, all.Submodules())
		if fits := bits.OnesCount(uint(n)) == 1; (err == nil) != fits || !fits && !errors.Is(err, submodules.ErrUnsupported) {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// TestLowerErrors: what a submodule says of a task is told with task and submodule.
func TestLowerErrors(t *testing.T) {
	topo := tasktest.Topology(t, "2")
	sentinel := errors.New("no steps today")
	reg := submodules.Registry{plain(func(*submodules.Emitter, *submodules.Call) error { return sentinel })}
	p := tasktest.Plan(t, "shape=flat,fs=all,w=1,s=scripted")
	_, err := submodules.CompileFor(bcast(4, 0), topo.Flat(0), p, 0, reg)
	if want := "lower sb#0 with scripted/plain: no steps today"; !errors.Is(err, sentinel) || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q in it", err, want)
	}
}

func TestCompileNothing(t *testing.T) {
	for _, r := range []tasks.Request{bcast(0, 0), allreduce(0)} {
		for _, p := range compile(t, r, "2x2", "shape=han,fs=1,w=4,i=adapt,s=sm") {
			if p.Len() != 0 || len(p.Peers) != 0 || p.Scratch != 0 || p.Slots != 0 {
				t.Errorf("%v without elements: %v", r, p)
			}
		}
	}
}

// TestInnerSegments: a choice's inner segment is rounded down to whole elements,
// and up to one.
func TestInnerSegments(t *testing.T) {
	for _, tc := range []struct {
		inner string
		want  []string
	}{
		{"1", []string{"sb#0 send r0>r1 8B", "sb#0 send r0>r1 8B", "sb#0 send r0>r1 8B"}},
		{"23", []string{"sb#0 send r0>r1 16B", "sb#0 send r0>r1 8B"}},
		{"all", []string{"sb#0 send r0>r1 24B"}},
		{"0", []string{"sb#0 send r0>r1 24B"}},
	} {
		r := tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Float64}
		p := compile(t, r, "2", "shape=flat,fs=all,w=1,s=adapt/chain/"+tc.inner)[0]
		var got []string
		for i := range p.Steps() {
			got = append(got, p.Label(&p.Steps()[i]))
		}
		if strings.Join(got, ", ") != strings.Join(tc.want, ", ") {
			t.Errorf("inner %s: got %v, want %v", tc.inner, got, tc.want)
		}
	}
}

// One compiler makes the same programs in used memory as others do in fresh memory.
func TestCompilerAgain(t *testing.T) {
	on := tasktest.Topology(t, "3x2")
	var k submodules.Compiler
	for _, text := range []string{
		"shape=han,fs=8,w=3,i=adapt/chain,s=sm",
		"shape=flat-ar,fs=all,w=1,i=circulant/blocks",
		"shape=rsag,fs=all,w=1,i=adapt/ring,s=sm/rings",
		"shape=han,fs=all,w=1,i=adapt/binomial,s=solo",
	} {
		plan := tasktest.Plan(t, text)
		r := allreduce(96)
		h, err := tasks.Hierarchy(r, on, plan)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range levels.Rank(on.Size()) {
			want, err := submodules.CompileFor(r, h, plan, rank, all.Submodules())
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Compile(want.Tasks, on.Size(), all.Submodules())
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != want.String() || got.Scratch != want.Scratch || got.Slots != want.Slots || got.Backup != want.Backup {
				t.Errorf("%s, rank %d: in used memory\n%v\nwant\n%v", text, rank, got, want)
			}
			for i, peer := range want.Peers {
				if j := got.PeerIndex(peer.Rank); int(j) != i || !slices.Equal(got.Peers[i].In, peer.In) || !slices.Equal(got.Peers[i].Out, peer.Out) {
					t.Errorf("%s, rank %d: peer %d is %+v, want %+v", text, rank, i, got.Peers[i], peer)
				}
			}
		}
	}
}
