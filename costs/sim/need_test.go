package sim_test

import (
	"runtime"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// What a simulation is thought to need is what it has in use at most, within a factor of 1.5.
func TestNeed(t *testing.T) {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, test := range []struct {
		coll       tasks.Collective
		topo, plan string
		bytes      int64
		path       bool
	}{
		{tasks.Alltoall, "32x8", "shape=flat,fs=60KiB,w=4,i=adapt/linear", 240 << 10, false},
		{tasks.Alltoall, "16x8", "shape=flat,fs=60KiB,w=4,i=adapt/linear", 240 << 10, true},
		{tasks.Alltoall, "64x4", "shape=flat,fs=all,w=1,i=nbc/pairwise", 4 << 10, false},
		{tasks.Allgather, "64x4", "shape=flat,fs=all,w=1,i=nbc/ring", 64 << 10, false},
		{tasks.Allgather, "64x4", "shape=flat,fs=all,w=1,i=nbc/ring", 64 << 10, true},
	} {
		on := tasktest.Topology(t, test.topo)
		plan := tasktest.Plan(t, test.plan)
		var most int64
		c := sim.Compilation{Request: tasks.Request{Coll: test.coll, Type: tasks.Float32, Count: test.bytes / 4}, Topology: on, Plan: plan, Registry: all.Submodules()}
		need, err := c.Need()
		if err != nil {
			t.Fatal(err)
		}
		before := inUse()
		j, err := c.Job()
		if err != nil {
			t.Fatal(err)
		}
		most = inUse()
		if _, err := j.Run(machine.Assumed(), sim.Options{Path: test.path, Check: func(int64) error { most = max(most, inUse()); return nil }}); err != nil {
			t.Fatal(err)
		}
		most = max(most, inUse()) - before
		want := need.Bytes
		if test.path {
			want += need.Path
		}
		ratio := float64(want) / float64(most)
		t.Logf("%v on %s: %d KiB thought, %d KiB in use, %.2f", test.coll, test.topo, want>>10, most>>10, ratio)
		if ratio < 1/1.5 || ratio > 1.5 || need.Steps != j.Steps() {
			t.Errorf("%v on %s with %v: %d bytes and %d steps thought; %d and %d were", test.coll, test.topo, plan, want, need.Steps, most, j.Steps())
		}
	}
}
