package casegen_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/submodules/internal/sm"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

func draw(o casegen.Options, seed uint64) casegen.Case {
	return o.Draw(rand.New(rand.NewPCG(seed, 0)))
}

// TestDrawReachesEverything: in a few hundred cases each submodule, shape and
// collective comes up, so do unusual layouts.
func TestDrawReachesEverything(t *testing.T) {
	missing := map[string]bool{
		"bcast": true, "allreduce": true, "reduce ": true, "allgather": true, "gather ": true, "nbc/bruck": true, "barrier": true, "scan ": true, "exscan ": true, "nbc/pairwise": true, "first": true, "in place": true,
		"shape=flat": true, "shape=han": true, "fs=all": true, "w=1": true, "w=5": true,
		"adapt/binomial": true, "adapt/chain": true, "sm/slots": true, "sm/rings": true,
		"mb=": true, "sb=": true, "ib=": true, "wb=": true, "wr=": true,
		"tree:": true, "/rr": true, "root 7": true, " 0 ": true,
	}
	for seed := range uint64(800) {
		c := draw(casegen.Options{Registry: all.Submodules()}, seed)
		if err := c.Request.Validate(c.Topology.Size()); err != nil {
			t.Fatalf("seed %d: %v: %v", seed, c, err)
		}
		if err := all.Submodules().Check(c.Plan); err != nil {
			t.Fatalf("seed %d: %v: %v", seed, c, err)
		}
		for word := range missing {
			if strings.Contains(c.String(), word) {
				delete(missing, word)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("800 cases had none of %v", missing)
	}
}

func TestDrawKeepsToOptions(t *testing.T) {
	topo := tasktest.Topology(t, "2x2")
	plan := tasktest.Plan(t, "shape=flat,i=adapt/chain")
	for seed := range uint64(50) {
		c := draw(casegen.Options{Coll: tasks.Bcast, Topology: topo, Plan: plan, Registry: all.Submodules()}, seed)
		chain, _ := c.Plan.For(tasks.Kind{Symbol: 'i', Op: tasks.Bcast})
		if c.Request.Coll != tasks.Bcast || c.Topology != topo || c.Plan.Shape != tasks.Flat || chain.String() != "adapt/chain" {
			t.Errorf("seed %d: %v", seed, c)
		}
		if c := draw(casegen.Options{MaxRanks: 3, Registry: all.Submodules()}, seed); c.Topology.Size() > 9 {
			t.Errorf("seed %d: %d ranks", seed, c.Topology.Size())
		}
		if a, b := draw(casegen.Options{Registry: all.Submodules()}, seed), draw(casegen.Options{Registry: all.Submodules()}, seed); a.String() != b.String() {
			t.Errorf("seed %d draws %v and %v", seed, a, b)
		}
	}
}

// TestDrawWithoutAChoice: a registry that can't do a level leaves it open.
func TestDrawWithoutAChoice(t *testing.T) {
	for seed := range uint64(50) {
		c := draw(casegen.Options{Registry: submodules.Registry{sm.SM{}}}, seed)
		if between := slices.Contains(c.Plan.Keys(), "ib"); between {
			t.Errorf("seed %d: slots between nodes: %v", seed, c)
		}
	}
}
