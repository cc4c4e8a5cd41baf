package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The built-in rule chooses for every task that there is, something that can do it,
// and for nothing else.
func TestRuleNamesWhatThereIs(t *testing.T) {
	for _, spec := range []string{"1", "4", "4x1", "4x2", "3x2/rr", "a:3,b:1", "2x2x3"} {
		on := tasktest.Topology(t, spec)
		for _, coll := range tasks.Requestable() {
			for _, shape := range append([]tasks.Shape{0}, tasks.ShapesOf(coll)...) { // 0: the rule's own
				for _, count := range []int64{2, 1 << 18} {
					r := tasktest.Request(coll, 4*count)
					checkRule(t, r, on, tasks.Plan{Shape: shape})
					checkRule(t, r, on.OneProcess(), tasks.Plan{Shape: shape})
				}
			}
		}
	}
}

// Blocks that differ are chosen for by what they add up to: one huge block among empty
// ones is a message of its size, not one for each rank.
func TestRuleCountsBytes(t *testing.T) {
	for _, test := range []struct {
		on    string
		count func(rank int) int // float32
		want  string
	}{
		{"4x2", func(int) int { return 16 << 10 }, "shape=han,fs=15KiB,w=3,i=adapt/ring,s=sm"},
		{"4x2", func(rank int) int { return 16 << 10 * (rank % 2) }, "shape=han,fs=30KiB,w=3,i=adapt/ring,s=sm"},
		{"32x2", only(7, 4<<20), "shape=han,fs=60KiB,w=8,i=adapt/ring,s=sm"},
		{"32x2", only(0, 0), "shape=han,fs=all,w=4,i=nbc/bruck,s=sm/rings"},
		{"32x2", only(7, 1<<10), "shape=han,fs=all,w=4,i=nbc/bruck,s=sm/rings"},
	} {
		on := tasktest.Topology(t, test.on)
		counts := make([]int, on.Size())
		for rank := range counts {
			counts[rank] = test.count(rank)
		}
		blocks, err := tasks.NewCounts(counts)
		if err != nil {
			t.Fatal(err)
		}
		r := tasks.Request{Type: tasks.Float32, Counts: blocks, Count: blocks.Max()}
		for _, r.Coll = range []tasks.Collective{tasks.Gather, tasks.Scatter} {
			checkRule(t, r, on, tasks.Plan{})
			if p, _ := builtin.Choose(r, on, tasks.Plan{}); r.Counts.At(7) == r.Counts.Sum() && p.Segment > r.Bytes() != (r.Bytes() <= 16<<10) {
				t.Errorf("%v: a block of %d bytes is cut into segments of %d", r, r.Bytes(), p.Segment)
			}
		}
		r.Coll = tasks.Allgather
		if p, why := builtin.Choose(r, on, tasks.Plan{}); p.String() != test.want {
			t.Errorf("%v on %s: %v because %q; want %s", r, test.on, p, why.Lines(builtin.Rules()), test.want)
		}
		checkRule(t, r, on, tasks.Plan{})
	}
}

// only gives one rank elements.
func only(has, n int) func(rank int) int {
	return func(rank int) int {
		if rank == has {
			return n
		}
		return 0
	}
}

func checkRule(t *testing.T, r tasks.Request, on *levels.Topology, forced tasks.Plan) {
	t.Helper()
	p, _ := builtin.Choose(r, on, forced)
	g, err := tasks.Expand(r, on, p, 0)
	if err != nil {
		if forced.Shape == 0 || len(p.Keys()) > 0 {
			t.Errorf("%v on %v: %v: %v", r, on, p, err)
		}
		return // no such shape here
	}
	if err := all.Submodules().Supports(g); err != nil {
		t.Errorf("%v on %v: %v: %v", r, on, p, err)
	}
	for _, key := range p.Keys() {
		if !slices.ContainsFunc(g.Phases, func(ph tasks.Phase) bool {
			return ph.Kind.String() == key || string(ph.Kind.Symbol) == key
		}) {
			t.Errorf("%v on %v: %v chooses for %s, which there is not", r, on, p, key)
		}
	}
}

// What the rule takes by size and by number of nodes.
func TestRuleChoices(t *testing.T) {
	for _, test := range []struct {
		coll  tasks.Collective
		on    string
		bytes int64
		want  string
	}{
		{tasks.Allreduce, "4x2", 1 << 10, "shape=han,fs=all,w=4,i=nbc/linear,s=sm/rings"},
		{tasks.Allreduce, "4x2", 2 << 10, "shape=ar,fs=all,w=4,i=nbc/recdoubling,s=sm/rings"},
		{tasks.Allreduce, "2x2", 8, "shape=ar,fs=all,w=4,i=nbc/recdoubling,s=sm/rings"},
		{tasks.Allreduce, "2x2", 8 << 10, "shape=ar,fs=all,w=4,i=nbc/recdoubling,s=sm"},
		{tasks.Allreduce, "9x1", 8, "shape=ar,fs=all,w=4,i=nbc/recdoubling"},
		{tasks.Reduce, "8x1", 8, "shape=han,fs=all,w=4,i=nbc/linear"},
		{tasks.Bcast, "9x1", 8, "shape=han,fs=all,w=4,i=nbc/knomial"},
		{tasks.Allreduce, "4x1", 256 << 10, "shape=ar,fs=all,w=4,i=nbc/rabenseifner"},
		{tasks.Allreduce, "4x2", 64 << 10, "shape=ar,fs=all,w=4,i=nbc/rabenseifner,s=sm"},
		{tasks.Allreduce, "3x1", 256 << 10, "shape=rsag,fs=90KiB,w=3,i=adapt/ring"},
		{tasks.Allreduce, "4x1", 512 << 10, "shape=rsag,fs=120KiB,w=3,i=adapt/ring"},
		{tasks.Allreduce, "4x1", 4 << 20, "shape=rsag,fs=240KiB,w=3,i=adapt/ring"},
		{tasks.Allreduce, "4x1", 16 << 20, "shape=rsag,fs=960KiB,w=3,i=adapt/ring"},
		{tasks.Allgather, "4x2", 64 << 10, "shape=han,fs=15KiB,w=3,i=adapt/ring,s=sm"},
		{tasks.Allgather, "2x1", 256 << 10, "shape=han,fs=240KiB,w=8,i=adapt/ring"},
		{tasks.Bcast, "2x1", 1 << 20, "shape=han,fs=240KiB,w=8,i=adapt/chain"},
		{tasks.Bcast, "4x1", 4 << 20, "shape=han,fs=30KiB,w=8,i=adapt/chain"},
		{tasks.Bcast, "1x4", 4 << 20, "shape=han,fs=128KiB,w=4,s=sm"},
		{tasks.Scan, "4x2", 4 << 10, "shape=han,fs=all,w=4,i=adapt/chain,s=sm/rings"},
		{tasks.Scan, "3x2/rr", 4 << 10, "shape=flat,fs=all,w=4,i=nbc/recdoubling"},
		{tasks.Scan, "5x1", 4 << 10, "shape=han,fs=all,w=4,i=nbc/recdoubling"},
		{tasks.Alltoall, "1x2", 8 << 10, "shape=han,fs=all,w=4,s=sm"},
		{tasks.Alltoall, "1x2", 16 << 10, "shape=han,fs=256KiB,w=4,s=solo"},
	} {
		on := tasktest.Topology(t, test.on)
		r := tasktest.Request(test.coll, test.bytes)
		if p, why := builtin.Choose(r, on, tasks.Plan{}); p.String() != test.want {
			t.Errorf("%v on %s: %v because %q; want %s", r, test.on, p, why.Lines(builtin.Rules()), test.want)
		}
	}
}

// The file is as the command fmt writes it, and has no rule that nothing comes to.
func TestBuiltinRules(t *testing.T) {
	if b := builtin.Rules(); b.Format() != builtin.Text {
		t.Errorf("not formatted; want\n%s", b.Format())
	}
	for _, f := range builtin.Rules().Check() {
		t.Errorf("builtin.rules:%d:%d: %s", f.Line, f.Column, f.Message)
	}
}

// What the rule chooses for every collective on some machines.
func TestPlans(t *testing.T) {
	var b strings.Builder
	difference := tasks.UserOp("difference", false, func(a, b float32) float32 { return a - b })
	for _, spec := range []string{"1", "4", "9", "2x1", "4x1", "9x1", "4x2", "3x2/rr", "2x9", "2x2x3"} {
		on := tasktest.Topology(t, spec)
		for _, coll := range tasks.Requestable() {
			sizes, ops := []int64{8, 2 << 10, 8 << 10, 64 << 10, 512 << 10, 16 << 20}, []tasks.Op{{}}
			switch {
			case coll == tasks.Barrier:
				sizes = []int64{0}
			case (tasks.Request{Coll: coll}).Reduces():
				ops = []tasks.Op{tasks.Sum, difference}
			}
			for _, bytes := range sizes {
				for _, op := range ops {
					r := tasks.Request{Coll: coll, Type: tasks.Float32, Count: bytes / 4, Op: op}
					p, _ := builtin.Choose(r, on, tasks.Plan{})
					fmt.Fprintf(&b, "%s %v %v %v\n", spec, r, p, inOneProcess(r, on, p))
				}
			}
		}
	}
	dagtest.Golden(t, "testdata/plans.txt", b.String())
}

// inOneProcess is what the rule chooses for goroutine ranks, if that isn't p.
func inOneProcess(r tasks.Request, on *levels.Topology, p tasks.Plan) string {
	q, _ := builtin.Choose(r, on.OneProcess(), tasks.Plan{})
	if q.Equal(p) {
		return "goroutines alike"
	}
	return "goroutines " + q.String()
}

// Each part is of the first rules that have one, and these were followed: also the segments alone, the window alone,
// and who does the tasks.
func TestPartsOfTwoBases(t *testing.T) {
	asked := builtin.Ask(tasktest.Request(tasks.Bcast, 1<<22), tasktest.Topology(t, "4x2"))
	own, _ := asked.Choose(tasks.Plan{})
	for _, test := range []struct {
		rules string
		want  func(p *tasks.Plan)
	}{
		{"segments bcast: fs=4KiB", func(p *tasks.Plan) { p.Segment = 4 << 10 }},
		{"segments bcast: w=2", func(p *tasks.Plan) { p.Window = 2 }},
		{"segments bcast: fs=4KiB,w=2", func(p *tasks.Plan) { p.Segment, p.Window = 4<<10, 2 }},
		{"task bcast: by=adapt/binary", func(p *tasks.Plan) {
			for _, level := range []string{"i", "s"} {
				*p = p.Set(level, tasks.Choice{Submodule: "adapt", Algorithm: "binary"})
			}
		}},
	} {
		first, err := rules.Parse("first", test.rules)
		if err != nil {
			t.Fatal(err)
		}
		want := own
		test.want(&want)
		p, why := asked.ChooseBy(tasks.Plan{}, first, &builtin.Facts{Asked: asked})
		if followed := why.Leaves(first); p.String() != want.String() || len(followed) != 1 {
			t.Errorf("%s: %v by %d rules; want %v by one", test.rules, p, len(followed), want)
		}
	}
}
