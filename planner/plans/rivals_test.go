package plans_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// drawn is a question and the rule's plan for it.
func drawn(t *testing.T, rng *rand.Rand) (*builtin.Asked, tasks.Plan) {
	t.Helper()
	specs := []string{"2x1", "5x1", "8x1", "70x1", "300x1", "2x2", "4x3", "16x4", "2x2x2", "4x2/rr", "a:3,b:1", "65x2", "9"}
	on := tasktest.Topology(t, specs[rng.IntN(len(specs))])
	if rng.IntN(4) == 0 {
		on = on.OneProcess()
	}
	colls := tasks.Requestable()
	asked := builtin.Ask(tasktest.Request(colls[rng.IntN(len(colls))], 4*rng.Int64N(1<<rng.IntN(26)+1)), on)
	ruled, _ := asked.Choose(tasks.Plan{})
	return asked, ruled
}

// rivals lists those of a request.
func rivals(r tasks.Request, on *levels.Topology) []tasks.Plan {
	asked := builtin.Ask(r, on)
	ruled, _ := asked.Choose(tasks.Plan{})
	return plans.Rivals(asked, ruled)
}

// The registry knows all words of every rival, and each collective with a price has some.
func TestRivalsAreKnown(t *testing.T) {
	for _, spec := range []string{"4x1", "4x2", "3x3", "2x2x2"} {
		on := tasktest.Topology(t, spec)
		for _, coll := range []tasks.Collective{
			tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter, tasks.Gather, tasks.Scatter, tasks.Alltoall, tasks.Barrier,
		} {
			competing := rivals(tasktest.Request(coll, 1<<20), on)
			if len(competing) == 0 {
				t.Errorf("%v on %s: no rivals", coll, spec)
			}
			for _, p := range competing {
				if err := all.Submodules().Check(p); err != nil {
					t.Errorf("%v on %s: %v", coll, spec, err)
				}
			}
		}
	}
}

// Whatever is asked: a rival has a shape of its collective, a segment shorter than the message or the
// whole of it, and a window. It ignores nodes only where nodes have several ranks, and reads the memory
// of others only in long segments. Equal questions have equal rivals.
func TestRivalsMakeSense(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range 400 {
		asked, ruled := drawn(t, rng)
		r, on := asked.Request(), asked.On
		competing := plans.Rivals(asked, ruled)
		if again := plans.Rivals(builtin.Ask(r, on), ruled); !slices.EqualFunc(competing, again, tasks.Plan.Equal) {
			t.Fatalf("%v on %v: %v, then %v", r, on, competing, again)
		}
		for _, p := range competing {
			solo := strings.Contains(p.String(), "="+submodules.Solo)
			switch {
			case !p.Shape.Fits(r.Coll):
				t.Errorf("%v on %v: %v has another collective's shape", r, on, p)
			case p.Segment < 1 || p.Segment != tasks.Whole && p.Segment > r.AllBytes(on.Size()) || p.Window < 1:
				t.Errorf("%v on %v: %v has a segment of %d, a window of %d", r, on, p, p.Segment, p.Window)
			case (p.Shape.IsFlat() || p.Shape == tasks.Lanes) && on.Size() == on.Nodes():
				t.Errorf("%v on %v: %v is a plan of the nodes too", r, on, p)
			case solo && !strings.Contains(ruled.String(), "="+submodules.Solo) && min(p.Segment, r.Bytes()) < builtin.SoloFrom:
				t.Errorf("%v on %v: %v has short segments for %s", r, on, p, submodules.Solo)
			}
		}
	}
}

// Rivals go by the numbers of nodes and of ranks: by their roots' patience, and by what is even or a
// power of two.
func TestRivalsGoByRanks(t *testing.T) {
	for _, test := range []struct {
		coll  tasks.Collective
		on    string
		bytes int64
		has   string // words that some rival has
		lacks string // words that none has
	}{
		{tasks.Bcast, "2x1", 4096, "i=adapt/binomial", "adapt/binary nbc/knomial nbc/linear shape=flat"},
		{tasks.Bcast, "4x1", 4096, "i=adapt/binary i=nbc/knomial//8 i=nbc/linear is=adapt/linear", "adapt/chain shape=flat"},
		{tasks.Bcast, "65x1", 4096, "i=adapt/binary is=nbc/binomial", "i=nbc/linear is=adapt/linear"},
		{tasks.Bcast, "4x2", 4096, "shape=flat, shape=flat-sag, is=adapt/linear", "adapt/chain"},
		{tasks.Bcast, "200x2", 1 << 20, "i=adapt/kchain//8", "shape=flat-sag,fs=all,w=1,iag=adapt/ring,is=adapt/linear"},
		{tasks.Bcast, "4x1", 1 << 20, "i=adapt/chain fs=60KiB", "adapt/kchain fs=960KiB"},
		{tasks.Bcast, "9x1", 1 << 20, "i=adapt/kchain//8", ""},
		{tasks.Reduce, "4x2", 1 << 20, "nbc/rabenseifner", "knomial shape=sag"},
		{tasks.Allreduce, "16x1", 4096, "i=nbc/linear", "shape=lanes shape=flat"},
		{tasks.Allreduce, "17x1", 1 << 20, "shape=rsag", "i=nbc/linear"},
		{tasks.Allreduce, "4x2", 1 << 20, "shape=lanes, shape=flat-ar, shape=flat-rsag,", ""},
		{tasks.Allgather, "6x1", 4096, "nbc/neighbor adapt/linear", "nbc/recdoubling"},
		{tasks.Allgather, "7x1", 4096, "nbc/bruck", "nbc/neighbor nbc/recdoubling"},
		{tasks.Allgather, "8x1", 4096, "nbc/neighbor nbc/recdoubling", ""},
		{tasks.Allgather, "66x1", 4096, "nbc/neighbor", "adapt/linear"},
		{tasks.ReduceScatter, "8x1", 4096, "nbc/halving nbc/pairwise adapt/direct", "nbc/bruck"},
		{tasks.ReduceScatter, "66x1", 4096, "nbc/pairwise", "nbc/halving adapt/direct"},
		{tasks.Gather, "300x1", 4096, "i=nbc/binomial", "linear"},
		{tasks.Scatter, "4x2", 1 << 18, "i=adapt/linear shape=flat, fs=60KiB", ""},
		{tasks.Alltoall, "300x1", 4096, "nbc/bruck//4", "linear shape=lanes"},
		{tasks.Alltoall, "4x2", 4096, "shape=lanes,", "shape=lanes,fs=all,w=4,i=nbc/bruck"},
		{tasks.Barrier, "17x1", 0, "i=nbc/dissemination", "i=nbc/linear"},
	} {
		var text strings.Builder
		for _, p := range rivals(tasktest.Request(test.coll, test.bytes), tasktest.Topology(t, test.on)) {
			text.WriteString(p.String() + ", ")
		}
		for _, word := range strings.Fields(test.has) {
			if !strings.Contains(text.String(), word) {
				t.Errorf("%v of %d bytes on %s: no rival has %s", test.coll, test.bytes, test.on, word)
			}
		}
		for _, word := range strings.Fields(test.lacks) {
			if strings.Contains(text.String(), word) {
				t.Errorf("%v of %d bytes on %s: a rival has %s", test.coll, test.bytes, test.on, word)
			}
		}
	}
}

// On one node, and where the order of ranks or the lengths of blocks matter, there are none.
func TestNoRivals(t *testing.T) {
	inOrder := tasktest.Request(tasks.Allreduce, 4<<10)
	inOrder.Op = tasks.UserOp("first", false, func(a, _ float32) float32 { return a })
	differ := tasktest.Request(tasks.Allgather, 16)
	counts, err := tasks.NewCounts([]int{1, 2, 3, 4, 4, 3, 2, 1})
	if err != nil {
		t.Fatal(err)
	}
	differ.Counts = counts
	for _, test := range []struct {
		r  tasks.Request
		on string
	}{{tasktest.Request(tasks.Allreduce, 4<<10), "8"}, {inOrder, "4x2"}, {differ, "4x2"}, {tasktest.Request(tasks.Scan, 4<<10), "4x2"}} {
		if competing := rivals(test.r, tasktest.Topology(t, test.on)); len(competing) > 0 {
			t.Errorf("%v on %s: %v", test.r, test.on, competing)
		}
	}
}
