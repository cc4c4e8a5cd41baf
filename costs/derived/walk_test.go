package derived_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Other collectives are walked by the same rules.
func TestWalkCollectives(t *testing.T) {
	for _, c := range []struct {
		coll       tasks.Collective
		topo, plan string
		bytes      int64

		alpha, beta, combined float64 // with γ(k) = k − 1
	}{
		// All ranks but one send at once: the root hears them one after the other.
		{coll: tasks.Gather, topo: "5x1", plan: "shape=flat,fs=all,w=1,i=nbc/linear,s=sm", bytes: 100, alpha: 4, beta: 400},
		{coll: tasks.Scatter, topo: "5x1", plan: "shape=flat,fs=all,w=1,i=nbc/linear,s=sm", bytes: 100, alpha: 4, beta: 400},
		{coll: tasks.Reduce, topo: "4x1", plan: "shape=flat,fs=all,w=1,i=adapt/chain,s=sm", bytes: 100, alpha: 3, beta: 300, combined: 300},
		// Three exchanges, each combined.
		{coll: tasks.Allreduce, topo: "8x1", plan: "shape=ar,fs=all,w=1,iar=nbc/recdoubling,s=sm", bytes: 100, alpha: 3, beta: 300, combined: 300},
		// Three steps of a quarter each to reduce and three to gather.
		{coll: tasks.Allreduce, topo: "4x1", plan: "shape=ar,fs=all,w=1,iar=nbc/ring,s=sm", bytes: 400, alpha: 6, beta: 600, combined: 300},
		{coll: tasks.Allgather, topo: "6x1", plan: "shape=flat,fs=all,w=1,i=adapt/ring,s=sm", bytes: 100, alpha: 5, beta: 500},
		{coll: tasks.Alltoall, topo: "4x1", plan: "shape=flat,fs=all,w=1,i=nbc/linear,s=sm", bytes: 100, alpha: 3, beta: 300},
	} {
		on := tasktest.Topology(t, c.topo)
		p := tasktest.Plan(t, c.plan)
		r := tasks.Request{Coll: c.coll, Type: tasks.Uint8, Op: tasks.Sum, Count: c.bytes}
		got, err := derived.WalkRequest(r, on, p, all.Submodules(), gamma(t, "wire"), derived.Line{Alpha: 1000, Beta: 3, Combine: 1})
		if err != nil {
			t.Errorf("%v: %v", r, err)
			continue
		}
		if want := (derived.Coeff{Alpha: c.alpha, Beta: c.beta, Combined: c.combined}); got != want {
			t.Errorf("%v with %s: %+v, want %+v", r, c.plan, got, want)
		}
	}
}

// A message that is cut into more segments than a pass has costs as many passes.
func TestWalkPasses(t *testing.T) {
	on, _ := levels.Parse("3x1")
	p, _ := tasks.ParsePlan("shape=flat,fs=1,w=2,i=nbc/linear,s=sm")
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 2*tasks.MaxSegments + 3}
	got, err := derived.WalkRequest(r, on, p, all.Submodules(), gamma(t, "wire"), derived.Line{Alpha: 1000})
	if want := float64(2 * r.Count); err != nil || got.Alpha != want || got.Beta != want {
		t.Errorf("%+v, %v; want %v messages of a byte", got, err, want)
	}
}

func TestWalkRefuses(t *testing.T) {
	on, _ := levels.Parse("3x1")
	p, _ := tasks.ParsePlan("shape=flat,fs=all,w=1,i=nbc/linear,s=sm")
	progs := make([]*submodules.Program, 3)
	for rank := range progs {
		c, err := submodules.CompileRequest(tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 9}, on, p, levels.Rank(rank), all.Submodules())
		if err != nil {
			t.Fatal(err)
		}
		progs[rank] = c.Rest
	}
	if _, err := derived.Walk(progs[:2], derived.Gamma{}, derived.Line{}); err == nil || !strings.Contains(err.Error(), "of 3 in place 0 of 2") {
		t.Errorf("programs of 3 ranks walked on 2: %v", err)
	}
	gather, err := submodules.CompileRequest(tasks.Request{Coll: tasks.Gather, Type: tasks.Uint8, Count: 9}, on, p, 0, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	progs[0] = gather.Rest
	if _, err := derived.Walk(progs, derived.Gamma{}, derived.Line{Alpha: 1}); err == nil || !strings.Contains(err.Error(), "never begin") {
		t.Errorf("a gather's root among ranks of a bcast: %v", err)
	}
}

// Each rank has an end of its own: those of a chain end one after the other, except the last
// two, which end at once. Of a burst the first rank ends after one message, the last one with the burst.
func TestWalkRanks(t *testing.T) {
	for plan, ends := range map[string][]float64{
		"shape=flat,fs=all,w=1,i=adapt/chain,s=sm": {1, 2, 3, 4, 4},
		"shape=flat,fs=all,w=1,i=nbc/linear,s=sm":  {4, 1, 2, 3, 4},
	} {
		on, p := tasktest.Topology(t, "5x1"), tasktest.Plan(t, plan)
		r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 100}
		got, err := derived.WalkRanks(r, on, p, all.Submodules(), gamma(t, "wire"), derived.Line{Alpha: 1, Beta: 1})
		if err != nil {
			t.Fatal(err)
		}
		for rank, alpha := range ends {
			if want := (derived.Coeff{Alpha: alpha, Beta: 100 * alpha}); got[rank] != want {
				t.Errorf("%s: rank %d ends after %+v, want %+v", plan, rank, got[rank], want)
			}
		}
	}
}
