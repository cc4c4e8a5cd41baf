package price_test

import (
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// checkPrice complains about a price that is farther off the simulated time than by a share of it.
func (c cell) checkPrice(t *testing.T, m *machine.Machine, off float64) {
	t.Helper()
	got, want := c.price(t, m), c.simulate(t, m).Time.Nanoseconds()
	if math.Abs(got/want-1) > off {
		t.Errorf("%v: price %.0f ns, simulated %.0f, want at most %.0f%% off", c, got, want, 100*off)
	}
}

// Where no message waits for another one, a price is the simulated time. Where some do, it
// is near.
func TestPricesAreSimulatedTimes(t *testing.T) {
	for _, tc := range []struct {
		coll  tasks.Collective
		spec  string
		bytes int64
		plan  string
		off   float64 // share of the simulated time that the price may be off
	}{
		{tasks.Bcast, "2x1", 8, "shape=han,fs=all,w=4,i=adapt/binomial", 0.01},
		{tasks.Bcast, "64x1", 4096, "shape=han,fs=all,w=4,i=adapt/binomial", 0.02},
		{tasks.Bcast, "13x1", 4096, "shape=han,fs=all,w=4,i=adapt/binary", 0.02},
		{tasks.Bcast, "40x1", 1 << 10, "shape=han,fs=all,w=4,i=nbc/knomial", 0.05},
		{tasks.Bcast, "9x1", 64 << 10, "shape=han,fs=all,w=4,i=nbc/linear", 0.02},
		{tasks.Bcast, "8x1", 4 << 20, "shape=han,fs=60KiB,w=8,i=adapt/chain", 0.02},
		{tasks.Bcast, "64x1", 1 << 20, "shape=han,fs=15KiB,w=8,i=adapt/binary", 0.1},
		{tasks.Bcast, "64x1", 1 << 20, "shape=han,fs=all,w=4,i=circulant/blocks/15KiB", 0.2},
		{tasks.Reduce, "16x1", 1 << 10, "shape=han,fs=all,w=4,i=adapt/binomial", 0.02},
		{tasks.Reduce, "8x1", 4 << 20, "shape=han,fs=60KiB,w=8,i=adapt/chain", 0.02},
		{tasks.Reduce, "8x1", 1 << 20, "shape=han,fs=all,w=4,i=circulant/blocks/15KiB", 0.25},
		{tasks.Allreduce, "16x1", 4 << 10, "shape=ar,fs=all,w=4,i=nbc/recdoubling", 0.02},
		{tasks.Allreduce, "12x1", 4 << 10, "shape=ar,fs=all,w=4,i=nbc/recdoubling", 0.2},
		{tasks.Allreduce, "16x1", 64, "shape=ar,fs=all,w=4,i=nbc/recdoubling//4", 0.02},
		{tasks.Allreduce, "32x1", 4 << 10, "shape=ar,fs=all,w=4,i=nbc/recdoubling//4", 0.05},
		{tasks.Allreduce, "40x1", 64, "shape=ar,fs=all,w=4,i=nbc/recdoubling//8", 0.2},
		{tasks.Allreduce, "8x4", 256, "shape=flat-ar,fs=all,w=1,i=nbc/recdoubling//4", 0.2},
		{tasks.Barrier, "64x1", 0, "shape=ar,fs=all,w=4,i=nbc/dissemination//4", 0.05},
		{tasks.Barrier, "23x1", 0, "shape=ar,fs=all,w=4,i=nbc/dissemination//8", 0.05},
		{tasks.Allreduce, "32x1", 256 << 10, "shape=ar,fs=all,w=4,i=nbc/rabenseifner", 0.05},
		{tasks.Allreduce, "32x1", 64 << 10, "shape=ar,fs=all,w=4,i=circulant/blocks", 0.05},
		{tasks.Allreduce, "8x1", 4 << 20, "shape=rsag,fs=480KiB,w=3,i=adapt/ring", 0.05},
		{tasks.Allreduce, "16x4", 1 << 20, "shape=rsag,fs=960KiB,w=3,i=adapt/ring,s=sm", 0.1},
		{tasks.Allreduce, "4x4", 1 << 20, "shape=lanes,fs=all,w=1,i=adapt/ring,s=sm/rings", 0.1},
		{tasks.Allreduce, "4x4", 4 << 10, "shape=flat-ar,fs=all,w=1,i=nbc/recdoubling", 0.2},
		{tasks.Allreduce, "10x4", 800 << 10, "shape=flat-ar,fs=all,w=1,i=nbc/rabenseifner", 0.2},
		{tasks.Allreduce, "5x2", 1 << 20, "shape=flat-ar,fs=all,w=1,i=nbc/recdoubling", 0.1},
		{tasks.Allreduce, "8x1", 64 << 10, "shape=rsag,fs=all,w=1,irs=nbc/pairwise,iag=adapt/linear", 0.15},
		{tasks.Bcast, "16x1", 64, "shape=han,fs=all,w=1,i=adapt/binomial//4", 0.02},
		{tasks.Bcast, "40x1", 64, "shape=han,fs=all,w=1,i=nbc/knomial//8", 0.05},
		{tasks.Bcast, "40x1", 64, "shape=han,fs=all,w=1,i=adapt/binary//3", 0.05},
		{tasks.Bcast, "24x1", 1 << 20, "shape=han,fs=15KiB,w=8,i=adapt/kchain//8", 0.1},
		{tasks.Bcast, "12x1", 64 << 10, "shape=sag,fs=all,w=1,is=adapt/linear,iag=adapt/linear", 0.1},
		{tasks.Gather, "12x1", 4 << 10, "shape=han,fs=all,w=1,i=adapt/linear", 0.05},
		{tasks.Gather, "16x4", 4 << 10, "shape=han,fs=all,w=1,i=nbc/binomial,s=sm/rings", 0.1},
		{tasks.Alltoall, "8x1", 4 << 10, "shape=flat,fs=all,w=1,i=adapt/linear", 0.1},
		{tasks.Alltoall, "24x1", 64, "shape=flat,fs=all,w=1,i=nbc/bruck", 0.1},
		{tasks.Alltoall, "24x2", 2 << 10, "shape=han,fs=all,w=1,i=nbc/bruck//8,s=sm/rings", 0.2},
		{tasks.Scatter, "12x1", 64 << 10, "shape=han,fs=all,w=1,i=adapt/linear", 0.05},
		{tasks.Allgather, "8x1", 4 << 10, "shape=han,fs=all,w=4,i=adapt/ring", 0.05},
		{tasks.ReduceScatter, "8x1", 64 << 10, "shape=han,fs=all,w=4,i=nbc/halving", 0.1},
		{tasks.Bcast, "12x3", 2 << 20, "shape=flat,fs=15KiB,w=8,i=adapt/chain", 0.1},
		{tasks.Bcast, "12x3", 2 << 20, "shape=flat,fs=15KiB,w=8,i=adapt/kchain//2", 0.1}, // one node begins the second chain
		{tasks.Reduce, "4x8", 8 << 10, "shape=han,fs=all,w=1,i=adapt/binomial,s=sm/rings", 0.1},
		{tasks.Allgather, "a:1,b:9,c:2,d:1,e:3", 4 << 10, "shape=han,fs=all,w=1,i=adapt/ring,s=sm", 0.05},
		{tasks.Allgather, "a:1,b:9,c:2,d:1,e:3", 4 << 10, "shape=han,fs=all,w=1,i=nbc/linear,s=sm", 0.05},
		{tasks.ReduceScatter, "a:1,b:9,c:2,d:1,e:3", 4 << 10, "shape=han,fs=all,w=1,i=adapt/ring,s=sm", 0.1},
		{tasks.Barrier, "64x1", 0, "shape=ar,fs=all,w=4,i=nbc/dissemination", 0.02},
		{tasks.Bcast, "16x1", 256 << 10, "shape=han,fs=all,w=1,i=nbc/binomial", 0.02}, // long sends in turns
		{tasks.Bcast, "13x1", 1 << 20, "shape=han,fs=all,w=1,i=adapt/binomial", 0.02},
		{tasks.Bcast, "23x1", 1 << 20, "shape=han,fs=all,w=1,i=nbc/knomial", 0.02},
		{tasks.Scatter, "13x1", 256 << 10, "shape=han,fs=all,w=1,i=nbc/binomial", 0.05},
		{tasks.Scatter, "4x2", 1 << 20, "shape=flat,fs=all,w=1,i=adapt/linear", 0.05}, // a near rank beside far ones
		{tasks.Gather, "4x2", 1 << 20, "shape=flat,fs=all,w=1,i=adapt/linear", 0.05},
		{tasks.Gather, "3x4", 256 << 10, "shape=flat,fs=all,w=1,i=nbc/linear", 0.05},
	} {
		cell{tasktest.Request(tc.coll, tc.bytes), tc.spec, tc.plan}.checkPrice(t, machine.Assumed(), tc.off)
	}
}

// Where a node's memory is slower than a rank's copies, it says what large messages on it take.
func TestSlowMemory(t *testing.T) {
	m := machine.Assumed()
	m.MemoryByte = 3 * m.CopyByte
	for _, tc := range []struct {
		coll tasks.Collective
		plan string
	}{
		{tasks.Reduce, "shape=han,fs=all,w=1,i=adapt/binomial,s=sm/rings"},
		{tasks.Bcast, "shape=han,fs=all,w=1,i=adapt/binomial,s=sm/rings"},
		{tasks.Gather, "shape=han,fs=all,w=1,i=adapt/linear,s=sm/rings"},
		{tasks.Allreduce, "shape=lanes,fs=all,w=1,i=nbc/recdoubling,s=sm/rings"},
	} {
		cell{tasktest.Request(tc.coll, 8<<10), "2x8", tc.plan}.checkPrice(t, m, 0.12)
	}
}

// The terms make up the price, and each has a name.
func TestTerms(t *testing.T) {
	p, _ := cell{tasktest.Request(tasks.Allreduce, 4<<20), "16x4", "shape=han,fs=60KiB,w=8,i=adapt/chain,s=sm"}.terms(t, machine.Assumed())
	sum := 0.0
	for _, v := range p.Values() {
		if v < 0 {
			t.Errorf("a term of %v ns", v)
		}
		sum += v
	}
	if math.Abs(sum-p.NS) > 1 {
		t.Errorf("terms make up %v ns, the price is %v", sum, p.NS)
	}
	if len(price.Names()) != len(p.Values()) {
		t.Errorf("%d names for %d terms", len(price.Names()), len(p.Values()))
	}
	if p.Filling == 0 || p.Wire == 0 {
		t.Errorf("a pipeline whose filling takes %v ns, and its bytes %v", p.Filling, p.Wire)
	}
}

// Ranks that share processors wait for them.
func TestSharedCores(t *testing.T) {
	m := machine.Assumed()
	c := cell{tasktest.Request(tasks.Allreduce, 8), "64x1", "shape=ar,fs=all,w=1,i=nbc/recdoubling"}
	free := c.price(t, m)
	m.Cores.InAll = 2
	if shared := c.price(t, m); free == 0 || shared <= free {
		t.Errorf("64 ranks on two processors take %v ns, each on its own %v", shared, free)
	}
	// A byte on the wire keeps no processor busy.
	for _, plan := range []string{"fs=all,w=1,i=circulant/blocks/10KiB", "fs=10KiB,w=8,i=adapt/chain", "fs=10KiB,w=8,i=adapt/binary"} {
		c := cell{tasktest.Request(tasks.Bcast, 1<<20), "8x1", "shape=han," + plan}
		if free, shared := c.price(t, machine.Assumed()), c.price(t, m); free == 0 || shared > 1.1*free {
			t.Errorf("%s: %v ns on two processors, %v on eight, and the wire is busiest", plan, shared, free)
		}
	}
}

// What a wire that was idle lets through at once saves nothing: the next call finds it used up.
func TestBurst(t *testing.T) {
	m := machine.Assumed()
	c := cell{tasktest.Request(tasks.Allreduce, 1<<10), "16x1", "shape=han,fs=all,w=4,i=nbc/linear"}
	want := c.price(t, m)
	m.Links[1].BurstBytes = 20 << 10
	if got := c.price(t, m); want == 0 || got != want {
		t.Errorf("with bursts %v ns, without %v", got, want)
	}
}

// What has no closed form has no price.
func TestNoPrice(t *testing.T) {
	for _, tc := range []struct {
		coll tasks.Collective
		plan string
	}{
		{tasks.Allreduce, "shape=rotate,fs=all,w=1,i=adapt/binomial,s=sm"},
		{tasks.Allreduce, "shape=han-lockstep,fs=all,w=1,i=adapt/chain,s=sm"},
		{tasks.Allreduce, "shape=han,fs=all,w=1,s=sm"},
		{tasks.Alltoall, "shape=han-lockstep,fs=all,w=1,i=adapt/linear,s=sm"},
		{tasks.Bcast, "shape=han,fs=all,i=adapt/chain,s=sm"},
		{tasks.Bcast, "shape=han,fs=all,w=1,i=adapt/splitbinary,s=sm"},
	} {
		c := cell{tasktest.Request(tc.coll, 1<<20), "4x2", tc.plan}
		if got, ok := c.terms(t, machine.Assumed()); ok {
			t.Errorf("%v: %+v", c, got)
		}
	}
	m := machine.Assumed()
	m.Links = m.Links[:1]
	if _, err := price.New(m, tasktest.Topology(t, "4x2"), tasktest.Request(tasks.Bcast, 8), all.Submodules()); err == nil {
		t.Error("a machine without links between nodes has prices for four")
	}
}

// The tasks of a pipeline make up its price: the first segment passes all of them, and each further
// one the slowest.
func TestTasks(t *testing.T) {
	for _, text := range []string{"shape=han,fs=64KiB,w=64,i=adapt/chain,s=sm", "shape=ar,fs=all,w=1,i=nbc/rabenseifner,s=sm/rings"} {
		c := cell{tasktest.Request(tasks.Allreduce, 4<<20), "8x4", text}
		p, plan := c.pricer(t, machine.Assumed()), tasktest.Plan(t, text)
		want, _ := p.Plan(plan)
		all, segments, ok := p.Tasks(plan)
		first, each := 0.0, 0.0
		for _, one := range all {
			first, each = first+one.First, max(each, one.Each)
		}
		if got := first + (segments-1)*each; !ok || got > want.NS+1 || got*float64(len(all)) < want.NS { // tasks may share what is busiest
			t.Errorf("%s: %d tasks make up %.0f ns of %.0f, %v", text, len(all), got, want.NS, ok)
		}
	}
	c := cell{request: tasktest.Request(tasks.Allreduce, 4<<20), spec: "8x4"}
	if _, _, ok := c.pricer(t, machine.Assumed()).Tasks(tasks.Plan{Shape: tasks.HanLockstep, Segment: 1, Window: 1}); ok {
		t.Error("what has no price has tasks")
	}
}
