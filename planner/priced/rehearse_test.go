package priced

import (
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

func ask(t *testing.T, coll tasks.Collective, topo string, bytes int64) *builtin.Asked {
	t.Helper()
	on := tasktest.Topology(t, topo)
	r := tasktest.Request(coll, bytes)
	return builtin.Ask(r, on)
}

// What is simulated in part, or on one node for all, takes as long as the whole.
func TestPartsTakeAsLong(t *testing.T) {
	m := machine.Assumed()
	for _, tc := range []struct {
		coll  tasks.Collective
		topo  string
		bytes int64
		plan  string
	}{
		{tasks.Bcast, "6x2", 8 << 20, "shape=han,fs=60KiB,w=8,i=adapt/chain,s=sm"},
		{tasks.Bcast, "9x1", 4 << 20, "shape=han,fs=all,w=4,i=circulant/blocks/30KiB"},
		{tasks.Reduce, "8x1", 8 << 20, "shape=han,fs=120KiB,w=8,i=adapt/binary"},
		{tasks.Allreduce, "8x2", 16 << 20, "shape=rsag,fs=480KiB,w=3,i=adapt/ring,s=sm"},
		{tasks.Allgather, "8x2", 64 << 10, "shape=flat,fs=all,w=1,i=adapt/ring"},
		{tasks.Allreduce, "16x1", 16 << 10, "shape=ar,fs=all,w=1,i=nbc/recdoubling"},
	} {
		plan := tasktest.Plan(t, tc.plan)
		asked := ask(t, tc.coll, tc.topo, tc.bytes)
		s := newRehearsal(m, asked, all.Submodules(), 1e8)
		got, _, ok := s.time(plan, 0)
		compilation := sim.Compilation{Request: asked.Request(), Topology: asked.On, Plan: plan, Registry: s.reg}
		job, err := compilation.Job()
		if err != nil {
			t.Fatal(err)
		}
		whole, err := job.Run(m, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := whole.Time.Nanoseconds(); !ok || math.Abs(got/want-1) > 0.03 {
			t.Errorf("%v %s: %.1f µs, %v; want %.1f", asked.Request(), tc.plan, got/1e3, ok, want/1e3)
		}
		if used := 1e8 - s.left; used > 8*job.Steps() {
			t.Errorf("%v %s: it took the work of %d steps, and has %d", asked.Request(), tc.plan, used, job.Steps())
		}
		s.noneStands = true
		if guess, work := s.guess(asked.Request(), plan), job.Steps()+sim.CompiledStep*compilation.Compiled(); guess > 2*work || work > 2*guess {
			t.Errorf("%v %s: the whole is the work of %d steps, guessed are %d", asked.Request(), tc.plan, work, guess)
		}
	}
}

// The budget bounds what is simulated. Among very many ranks that is nothing, and prices decide.
func TestBudget(t *testing.T) {
	m := machine.Assumed()
	for topo, simulates := range map[string]bool{"16x2": true, "1100x1": false} {
		asked := ask(t, tasks.Bcast, topo, 1<<10)
		ruled, _ := asked.Choose(tasks.Plan{})
		c, err := Choose(m, asked, ruled, all.Submodules(), Exact)
		if err != nil || c.Tried > 0 != simulates || len(c.Plans) == 0 || c.Plans[0].Time() <= 0 {
			t.Errorf("%s: %+v, %v", topo, c, err)
		}
	}
	s := newRehearsal(m, ask(t, tasks.Alltoall, "16x2", 1<<20), all.Submodules(), 100)
	plan := tasktest.Plan(t, "shape=flat,fs=all,w=1,i=adapt/linear")
	if ns, _, ok := s.time(plan, 0); ok {
		t.Errorf("a plan of too many steps takes %v", ns)
	}
}

// Plans share a job if they differ in lengths alone.
func TestStructure(t *testing.T) {
	r := ask(t, tasks.Bcast, "4x2", 1<<20).Request()
	name := func(bytes int64, text string) string {
		p := tasktest.Plan(t, text)
		r.Count = bytes / 4
		return new(rehearsal).structure(r, p)
	}
	one := name(1<<20, "shape=han,fs=64KiB,w=8,i=adapt/chain/16KiB,s=sm")
	if other := name(1<<18, "shape=han,fs=16KiB,w=8,i=adapt/chain/4KiB,s=sm"); other != one {
		t.Errorf("16 segments in 4 pieces are %q and %q", one, other)
	}
	for _, text := range []string{
		"shape=han,fs=64KiB,w=4,i=adapt/chain/16KiB,s=sm", "shape=han,fs=64KiB,w=8,i=adapt/chain/8KiB,s=sm", "shape=han,fs=32KiB,w=8,i=adapt/chain/16KiB,s=sm",
		"shape=han,fs=64KiB,w=8,i=adapt/binary/16KiB,s=sm", "shape=han,fs=64KiB,w=8,i=adapt/chain/16KiB,s=solo", "shape=han,fs=60KiB,w=8,i=adapt/chain/16KiB,s=sm",
	} {
		if other := name(1<<20, text); other == one {
			t.Errorf("%s shares a job with other windows, pieces, segments or algorithms", text)
		}
	}
}

// Others of a family follow its ratio, then those alike between nodes, then those of its shape.
func TestExpected(t *testing.T) {
	at := func(text string, price float64) *candidate {
		p := tasktest.Plan(t, text)
		s := &rehearsal{asked: ask(t, tasks.Bcast, "4x2", 1<<20)}
		c := &candidate{family: s.family(p), outer: s.outer(p), known: true}
		c.Plan, c.Price.NS = p, price
		return c
	}
	c := contest{ratios: map[string]ratios{}}
	fresh, _, _ := c.expectedTime(at("shape=han,fs=all,i=adapt/binary,s=sm", 100))
	c.learn(at("shape=han,fs=all,i=adapt/chain,s=sm", 100), 150)
	own, least, known := c.expectedTime(at("shape=han,fs=all,i=adapt/chain,s=sm", 100))
	_, finer, _ := c.expectedTime(at("shape=han,fs=all,i=adapt/chain/8KiB,s=sm", 100))
	cousin, lower, _ := c.expectedTime(at("shape=han,fs=all,i=adapt/chain,s=solo", 100))
	shape, _, _ := c.expectedTime(at("shape=han,fs=64KiB,i=adapt/chain,s=sm", 100))
	other, lowest, _ := c.expectedTime(at("shape=flat,fs=all,i=adapt/binary", 100))
	if fresh != 100 || own != 150 || !known || cousin != 150 || shape >= 150 || shape <= other || other <= 100 {
		t.Errorf("after one of 100 took 150: its family %v, the same between nodes %v, its shape %v, others %v", own, cousin, shape, other)
	}
	if least >= own || finer >= least || lower != finer || lowest >= lower {
		t.Errorf("at least %v, %v in finer pieces, %v, %v", least, finer, lower, lowest)
	}
}

// The least next ratio is as far below the others as these are apart, and below the last one by a share.
func TestLowest(t *testing.T) {
	for want, r := range map[float64]ratios{0.25: {last: 2, least: 1, most: 4}, 1.5: {last: 2, least: 2, most: 2}} {
		if got := r.lowest(0.75); got != want {
			t.Errorf("%+v: %v, want %v", r, got, want)
		}
	}
}

// A plan that seemed the best in part is simulated whole before it is chosen.
func TestConfirm(t *testing.T) {
	s := newRehearsal(machine.Assumed(), ask(t, tasks.Bcast, "6x2", 1<<20), all.Submodules(), 1<<20)
	var both []candidate
	for _, text := range []string{"shape=han,fs=16KiB,w=8,i=adapt/chain,s=sm", "shape=han,fs=32KiB,w=8,i=adapt/chain,s=sm"} {
		p := tasktest.Plan(t, text)
		one := candidate{isPart: true}
		one.Plan, one.Simulated = p, 1 // far too little
		both = append(both, one)
	}
	givenUp := candidate{}
	givenUp.Plan, givenUp.Expected = both[0].Plan, 1e12
	c := contest{rehearsal: s, seen: append(both, givenUp)}
	c.confirm()
	if c.seen[0].isPart || c.seen[0].Simulated < 1000 || c.seen[1].Simulated < c.seen[0].Simulated || c.best != c.seen[0].Simulated {
		t.Errorf("%+v", c.seen)
	}
}

// What one node said for all is confirmed by all ranks, and corrects what is alike between nodes.
func TestConfirmAllRanks(t *testing.T) {
	s := newRehearsal(machine.Assumed(), ask(t, tasks.Alltoall, "4x3", 16<<10), all.Submodules(), 1<<20)
	var both []candidate
	var part int64 // steps of one node
	for _, text := range []string{"shape=lanes,fs=all,w=4,i=adapt/pairwise,s=sm", "shape=lanes,fs=all,w=4,i=adapt/pairwise,s=sm/rings"} {
		p := tasktest.Plan(t, text)
		before := s.left
		ns, isPart, ok := s.time(p, 0)
		if part = max(part, before-s.left); !ok || !isPart {
			t.Fatalf("%s: %v, %v", text, isPart, ok)
		}
		one := candidate{isPart: isPart, outer: s.outer(p)}
		one.Plan, one.Simulated = p, ns/10 // far too little
		both = append(both, one)
	}
	least, before := both[1].Simulated, s.left
	c := contest{rehearsal: s, seen: both}
	c.confirm()
	if spent := before - s.left; c.seen[0].isPart || s.noneStands || spent <= part || c.seen[0].Simulated < 5*least || c.seen[1].Simulated < 5*least {
		t.Errorf("%d steps, of one node %d: %+v", spent, part, c.seen)
	}
}

// A plan that is too large for the budget costs none of it.
func TestLargePlanIsFree(t *testing.T) {
	s := newRehearsal(machine.Assumed(), ask(t, tasks.Bcast, "8x4", 8<<20), all.Submodules(), 1000)
	p := tasktest.Plan(t, "shape=flat,fs=15KiB,w=8,i=adapt/chain")
	if _, _, ok := s.time(p, 0); ok || s.left != 1000 {
		t.Errorf("a large plan was simulated: %v; %d of 1000 steps are left", ok, s.left)
	}
}

// A spread begins with what is assumed, and comes nearer to that of many values.
func TestSpread(t *testing.T) {
	var s spread
	if got := s.deviation(); math.Abs(got-priorDeviation) > 1e-9 {
		t.Errorf("of nothing %v, want %v", got, priorDeviation)
	}
	for i := range 10_000 {
		s = s.with(1 + float64(i%2)) // 1 or 2: half of one apart from their mean
	}
	if got := s.deviation(); math.Abs(got-0.5) > 0.01 || math.Abs(s.mean(1.5)-1.5) > 1e-9 {
		t.Errorf("%v around %v, want 0.5 around 1.5", got, s.mean(1.5))
	}
}

// A pipeline through several levels is full when it is on all of them, one after the other.
func TestPipelinesAddUp(t *testing.T) {
	fill := func(topo, shape, name string) int {
		asked := builtin.Ask(tasktest.Request(tasks.Bcast, 1<<20), tasktest.Topology(t, topo))
		_, fill := newRehearsal(machine.Assumed(), asked, all.Submodules(), 0).pipelineOf(tasktest.Plan(t, shape+",fs=4KiB,w=4,i="+name+",s="+name))
		return fill
	}
	for _, name := range []string{"adapt/binomial", "adapt/chain", "adapt/binary"} {
		both, outer, inner := fill("4x8", "shape=han", name), fill("4x1", "shape=flat", name), fill("1x8", "shape=flat", name)
		if both != outer+inner || outer == 0 || inner == 0 {
			t.Errorf("%s: full after %d steps on two levels, after %d and %d on each", name, both, outer, inner)
		}
	}
}
