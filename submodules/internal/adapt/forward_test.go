package adapt_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/internal/adapt"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// TestForward: in a bcast each inner segment moves on as soon as it is there. A send waits for
// the recv of its own bytes and for an earlier send to the same rank, and for nothing else.
func TestForward(t *testing.T) {
	sends := 0
	each(t, 7, func(t *testing.T, op tasks.Collective, p *submodules.Program) {
		if op != tasks.Bcast {
			return
		}
		for id := range dag.ID(p.Len()) {
			s := p.Step(id)
			if s.Kind != submodules.SendStep {
				continue
			}
			sends++
			for _, before := range p.Pred(id) {
				b := p.Step(before)
				arrives := b.Kind == submodules.RecvStep && b.Dst == s.A
				paces := b.Kind == submodules.SendStep && b.Peer == s.Peer && s.Edge-b.Edge == adapt.MaxSends
				if !arrives && !paces {
					t.Errorf("%s waits for %s", p.Label(s), p.Label(b))
				}
			}
		}
	})
	if sends == 0 {
		t.Error("no bcast sends anything")
	}
}

// alone compiles a request for all of n ranks in one group, led by rank 0.
func alone(t *testing.T, r tasks.Request, n int, plan string) []*submodules.Program {
	t.Helper()
	return submoduletest.Compile(t, r, tasktest.Topology(t, strconv.Itoa(n)), tasktest.Plan(t, plan), submodules.Registry{adapt.Adapt{}})
}

// TestSplitBinary: the root sends the message once, and half of it more if a place on the left
// has no partner; others send at most one and a half messages, and each gets it once.
func TestSplitBinary(t *testing.T) {
	const bytes = 64
	for n := 2; n <= 40; n++ {
		progs := alone(t, tasktest.Request(tasks.Bcast, bytes), n, "shape=flat,fs=all,w=1,s=adapt/splitbinary/8")
		if _, err := check.Programs(progs); err != nil {
			t.Fatal(err)
		}
		for rank, p := range progs {
			var sent int64
			for _, s := range p.Steps() {
				if s.Kind == submodules.SendStep {
					sent += s.Len()
				}
			}
			least, most := int64(0), int64(bytes*3/2)
			if rank == 0 && (n == 2 || n%2 == 1) {
				least, most = bytes, bytes
			}
			if sent < least || sent > most {
				t.Errorf("rank %d of %d sends %d bytes, want %d to %d", rank, n, sent, least, most)
			}
		}
	}
}

// TestEager: in a pairwise alltoall messages up to the plan's eager bytes wait for no other
// partner. Longer ones go one after the other: each waits for the exchange before.
func TestEager(t *testing.T) {
	const n, bytes = 7, 64
	for _, tc := range []struct {
		eager int64
		ready int // messages of each rank that may leave at once
	}{{0, 1}, {bytes - 1, 1}, {bytes, n - 1}} {
		plan := "shape=flat,fs=all,w=1,s=adapt/pairwise"
		if tc.eager > 0 {
			plan += fmt.Sprintf(",eager=%d", tc.eager)
		}
		for rank, p := range alone(t, tasktest.Request(tasks.Alltoall, bytes), n, plan) {
			ready := 0
			for id, s := range p.Steps() {
				if s.Kind == submodules.SendStep && len(p.Pred(dag.ID(id))) == 0 {
					ready++
				}
			}
			if ready != tc.ready {
				t.Errorf("eager=%d: %d messages of rank %d wait for nothing, want %d", tc.eager, ready, rank, tc.ready)
			}
		}
	}
}

// TestDirect: a direct reduce-scatter combines along the tree of [tasks.Split], in whichever
// order parts arrive: a rank's last reduction waits for one on each side, if a side is more
// than one rank.
func TestDirect(t *testing.T) {
	for n := 2; n <= 17; n++ {
		r := tasktest.Request(tasks.ReduceScatter, 4)
		for rank, p := range alone(t, r, n, "shape=flat,fs=all,w=1,s=adapt/direct") {
			var reductions []dag.ID
			for id, s := range p.Steps() {
				if s.Kind == submodules.ReduceStep {
					reductions = append(reductions, dag.ID(id))
				}
			}
			if len(reductions) != n-1 {
				t.Fatalf("rank %d of %d combines %d times", rank, n, len(reductions))
			}
			is := func(id dag.ID) bool { return slices.Contains(reductions, id) }
			last := p.Pred(reductions[n-2])
			sides := 0
			for _, size := range []int{tasks.Split(n), n - tasks.Split(n)} {
				sides += min(1, size-1)
			}
			if got := len(slices.DeleteFunc(slices.Clone(last), func(id dag.ID) bool { return !is(id) })); got != sides {
				t.Errorf("rank %d of %d: the last reduction waits for %d others, want %d", rank, n, got, sides)
			}
		}
	}
}
