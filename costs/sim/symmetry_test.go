package sim_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// tieError is by how much the times of one node for all may differ from those of all nodes,
// as a share: in what goes first of what happens at the same time. Where the whole
// simulation serves equal nodes in turns, the first node is no better off than others.
const tieError = 0.03

// One node's simulation stands for all nodes': it counts the same, and takes as long.
func TestSymmetricIsWhole(t *testing.T) {
	for _, test := range []struct {
		coll       tasks.Collective
		topo, plan string
		bytes      int64
	}{
		{tasks.Alltoall, "8x3", "shape=flat,fs=all,w=1,i=nbc/bruck", 64 << 10},
		{tasks.Alltoall, "5x4", "shape=flat,fs=60KiB,w=4,i=nbc/bruck", 1 << 20},
		{tasks.Allgather, "6x3", "shape=flat,fs=all,w=4,i=nbc/ring", 64 << 10},
		{tasks.Allgather, "3x2x2", "shape=flat,fs=60KiB,w=4,i=nbc/ring", 1 << 20},
		{tasks.Allgather, "8x2", "shape=flat,fs=all,w=1,i=nbc/recdoubling", 64 << 10}, // by xor
		{tasks.Alltoall, "8x4", "shape=flat,fs=60KiB,w=4,i=adapt/linear", 256 << 10},
		{tasks.Alltoall, "16x6", "shape=flat,fs=60KiB,w=4,i=adapt/linear", 64 << 10},
		{tasks.Alltoall, "16x12", "shape=flat,fs=60KiB,w=4,i=adapt/linear", 8 << 10},
		{tasks.Alltoall, "32x2", "shape=flat,fs=all,w=1,i=adapt/pairwise", 64 << 10},
		{tasks.Alltoall, "16x4", "shape=flat,fs=all,w=1,i=adapt/pairwise", 100},
		{tasks.Alltoall, "16x4", "shape=flat,fs=all,w=1,i=nbc/pairwise", 64 << 10},
		{tasks.Alltoall, "16x2", "shape=flat,fs=all,w=1,i=nbc/linear", 1000},
		{tasks.Alltoall, "64x1", "shape=flat,fs=60KiB,w=1,i=adapt/linear", 64 << 10},
	} {
		on, plan := tasktest.Topology(t, test.topo), tasktest.Plan(t, test.plan)
		c := sim.Compilation{Request: tasks.Request{Coll: test.coll, Type: tasks.Float32, Count: test.bytes / 4}, Topology: on, Plan: plan, Registry: all.Submodules()}
		whole, err := c.Job()
		if err != nil {
			t.Errorf("%v with %v: %v", test.topo, plan, err)
			continue
		}
		one, err := c.SymmetricJob()
		if err != nil {
			t.Errorf("%v on %s with %v: %v", c.Request, test.topo, plan, err)
			continue
		}
		want, err := whole.Run(machine.Assumed(), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := one.Run(machine.Assumed(), sim.Options{Path: true})
		if err != nil {
			t.Fatal(err)
		}
		off := float64(got.Time)/float64(want.Time) - 1
		t.Logf("%v on %s with %v: %v, whole %v, %+.2f%%", c.Request, test.topo, plan, got.Time, want.Time, 100*off)
		if off < -tieError || off > tieError {
			t.Errorf("%v on %s with %v: %v, the whole simulation says %v", c.Request, test.topo, plan, got.Time, want.Time)
		}
		if one.Steps() != whole.Steps() || got.Steps != want.Steps || got.Bytes != want.Bytes || len(got.End) != len(want.End) {
			t.Errorf("%v on %s with %v: %d steps of %d, %d bytes; the whole simulation has %d of %d, %d bytes", c.Request, test.topo, plan, got.Steps, one.Steps(), got.Bytes, want.Steps, whole.Steps(), want.Bytes)
		}
	}
}

// What treats nodes differently is refused.
func TestAsymmetric(t *testing.T) {
	for _, test := range []struct {
		coll       tasks.Collective
		topo, plan string
	}{
		{tasks.Bcast, "4x2", "shape=han,fs=all,w=1,i=adapt/chain,s=sm"},
		{tasks.Alltoall, "6x2", "shape=flat,fs=all,w=1,i=adapt/linear"}, // blocks of 4 of 12 ranks meet
		{tasks.Alltoall, "8x3", "shape=flat,fs=all,w=1,i=adapt/linear"}, // blocks of 6
		{tasks.Alltoall, "4x2/rr", "shape=flat,fs=all,w=1,i=nbc/bruck"},
		{tasks.Alltoall, "a:3,b:2", "shape=flat,fs=all,w=1,i=nbc/bruck"},
		{tasks.Alltoall, "1x4", "shape=flat,fs=all,w=1,i=nbc/bruck"},
	} {
		on, plan := tasktest.Topology(t, test.topo), tasktest.Plan(t, test.plan)
		c := sim.Compilation{Request: tasks.Request{Coll: test.coll, Type: tasks.Float32, Count: 1000}, Topology: on, Plan: plan, Registry: all.Submodules()}
		if _, err := c.SymmetricJob(); !errors.Is(err, sim.ErrAsymmetric) {
			t.Errorf("%v on %s: error %v", test.coll, test.topo, err)
		}
	}
}

// A job that is too much work is given up after its first ranks.
func TestMostWork(t *testing.T) {
	r, on, p := problem(t, tasks.Allreduce, "32x4", 512<<10, "shape=flat-ar,fs=all,w=1,i=nbc/rabenseifner")
	whole := sim.Compilation{Request: r, Topology: on, Plan: p, Registry: all.Submodules()}
	if _, err := whole.Job(); err != nil {
		t.Fatal(err)
	}
	part := sim.Compilation{Request: r, Topology: on, Plan: p, Registry: all.Submodules(), Most: whole.Compiled()}
	if _, err := part.Job(); !errors.Is(err, sim.ErrLimit) || part.Compiled() > whole.Compiled()/10 {
		t.Errorf("%v after %d of %d steps", err, part.Compiled(), whole.Compiled())
	}
}

// One node stands for all on a machine that treats them alike. What would treat them differently is refused,
// and simulated of all ranks.
func TestStandsFor(t *testing.T) {
	r, on, p := problem(t, tasks.Alltoall, "8x3", 4<<10, "shape=flat,fs=all,w=1,i=nbc/bruck")
	c := sim.Compilation{Request: r, Topology: on, Plan: p, Registry: all.Submodules()}
	whole, err := c.Job()
	if err != nil {
		t.Fatal(err)
	}
	one, err := c.SymmetricJob()
	if err != nil {
		t.Fatal(err)
	}
	if whole.StandsFor() != 1 || one.StandsFor() != 8 || sim.CheckEqual(on) != nil {
		t.Errorf("a rank stands for %d of 8 nodes, and for %d in the whole job; %v", one.StandsFor(), whole.StandsFor(), sim.CheckEqual(on))
	}
	noisy, shared := machine.Assumed(), machine.Assumed()
	noisy.Noise, shared.Cores.InAll = 0.1, 4
	for _, test := range []struct {
		m    *machine.Machine
		o    sim.Options
		want string // of the error; empty: it is simulated
	}{
		{noisy, sim.Options{}, ""},
		{noisy, sim.Options{Seed: 1}, "noise is another one on each node"},
		{shared, sim.Options{}, "all nodes share processors"},
		{machine.Assumed(), sim.Options{Start: make([]sim.Time, 24)}, "ranks begin at given times"},
	} {
		if _, err := whole.Run(test.m, test.o); err != nil {
			t.Errorf("all ranks: %v", err)
		}
		if _, err := one.Run(test.m, test.o); errors.Is(err, sim.ErrAsymmetric) != (test.want != "") || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// Who trusts that nodes are equal compiles two ranks of other nodes, and gets the same job.
func TestTrusting(t *testing.T) {
	r, on, p := problem(t, tasks.Alltoall, "16x4", 4<<10, "shape=flat,fs=all,w=1,i=nbc/bruck")
	jobOf := func(c *sim.Compilation) *sim.Job {
		j, err := c.SymmetricJob()
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	whole := sim.Compilation{Request: r, Topology: on, Plan: p, Registry: all.Submodules()}
	part := whole
	part.Trusting = true
	want, err := jobOf(&whole).Run(machine.Assumed(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := jobOf(&part).Run(machine.Assumed(), sim.Options{})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("trusting %v, %v; else %v", got, err, want)
	}
	if each := whole.Compiled() / 64; part.Compiled() != 6*each {
		t.Errorf("%d steps are compiled, want those of 4+2 ranks of 64, which have %d", part.Compiled(), whole.Compiled())
	}
}
