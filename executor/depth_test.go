package executor_test

import (
	"errors"
	"os"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// deep are machines of three to five levels, the most with groups of unequal size.
func deep(t *testing.T) map[string]*levels.Topology {
	t.Helper()
	machines := map[string]*levels.Topology{}
	for _, spec := range []string{"2x2x2x2", "2x2x2x2/rr"} {
		machines[spec], _ = parse(t, spec, "")
	}
	for _, name := range []string{"numa-unequal.json", "sites-unequal.json", "gpus.json"} {
		text, err := os.ReadFile("../testdata/topologies/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if machines[name], err = levels.ParseJSON(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return machines
}

// everywhere gives an algorithm all tasks that it does, on all levels that it
// reaches, and the others to adapt.
func everywhere(t *levels.Topology, s submodules.Submodule, a submodules.Algorithm) tasks.Plan {
	p := tasks.Plan{Shape: tasks.Han, Segment: 64, Window: 3}
	shared := true
	for k := range t.Depth() {
		symbol := t.Level(k).Symbol
		p = p.Set(string(symbol), tasks.Choice{Submodule: "adapt"})
		for _, op := range a.Ops {
			if shared || s.Reach() == submodules.Anywhere {
				c := tasks.Choice{Submodule: s.Name(), Algorithm: a.Name}
				if a.Inner {
					c.Inner = 40 // sends what is left over inline
				}
				p = p.Set(tasks.Kind{Symbol: symbol, Op: op}.String(), c)
			}
		}
		shared = shared && symbol != levels.NodeSymbol
	}
	return p
}

// On deep machines, with groups of unequal size, all collectives run right by
// every algorithm on each level that it reaches, segments overlapping.
func TestDeepMachines(t *testing.T) {
	requests := []tasks.Request{
		{Coll: tasks.Bcast, Count: 100, Type: tasks.Int32, Root: 3},
		{Coll: tasks.Reduce, Count: 100, Type: tasks.Int32, Op: tasks.Sum, Root: 3},
		{Coll: tasks.Allreduce, Count: 100, Type: tasks.Float64, Op: tasks.Sum, InPlace: true},
		{Coll: tasks.Allgather, Count: 30, Type: tasks.Int32},
		{Coll: tasks.Gather, Count: 30, Type: tasks.Int32, Root: 3},
		{Coll: tasks.Barrier},
	}
	ran := map[string]int{}
	for name, topo := range deep(t) {
		for _, s := range all.Submodules() {
			for _, a := range s.Algorithms() {
				for _, r := range requests {
					c := casegen.Case{Request: r, Topology: topo, Plan: everywhere(topo, s, a)}
					if runOnce(t, name, c) {
						ran[s.Name()+"/"+a.Name]++
					}
				}
			}
		}
	}
	for _, s := range all.Submodules() {
		for _, a := range s.Algorithms() {
			if n := ran[s.Name()+"/"+a.Name]; n < len(requests) {
				t.Errorf("%s/%s ran %d times: most of what it does was refused", s.Name(), a.Name, n)
			}
		}
	}
}

// runOnce checks what a case leaves behind, and tells whether it can be at all.
func runOnce(t *testing.T, name string, c casegen.Case) bool {
	t.Helper()
	if _, err := (job{nil, c.Topology, c.Request, c.Plan}).compile(0); errors.Is(err, submodules.ErrUnsupported) || errors.Is(err, tasks.ErrPlan) {
		return false
	} else if err != nil {
		t.Fatalf("%s: %v: %v", name, c, err)
	}
	w := local.New(c.Topology.Size(), executor.Config{})
	defer w.Close()
	d := roundFrom(t, 1, c.Request, c.Topology.Size())
	do(t, w, job{w, c.Topology, c.Request, c.Plan}.bind(t, d.send, d.recv))
	d.check(t, c)
	return true
}
