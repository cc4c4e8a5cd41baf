package check_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// smallCase draws a case that the machine can run many times, and its programs.
func smallCase(random *rand.Rand) (casegen.Case, []*submodules.Program) {
	options := casegen.Options{Registry: all.Submodules(), MaxRanks: 6}
	for {
		c := options.Draw(random)
		h, err := tasks.Hierarchy(c.Request, c.Topology, c.Plan)
		if err != nil || c.Request.Bytes() > 256 || c.Request.Coll == tasks.Barrier {
			continue
		}
		progs, steps := make([]*submodules.Program, c.Topology.Size()), 0
		for rank := range progs {
			progs[rank], err = submodules.CompileFor(c.Request, h, c.Plan, levels.Rank(rank), all.Submodules())
			if err != nil {
				break
			}
			steps += progs[rank].Len()
		}
		if err == nil && steps > 0 && steps < 250 {
			return c, progs
		}
	}
}

// dropEdge returns the programs without one dependency, and that one's name; ""
// if they have none.
func dropEdge(progs []*submodules.Program, random *rand.Rand) ([]*submodules.Program, string) {
	rank := random.IntN(len(progs))
	p := progs[rank]
	var graph dag.Graph[struct{}]
	for range p.Len() {
		graph.Add(struct{}{})
	}
	for id := range dag.ID(p.Len()) {
		for _, next := range p.Succ(id) {
			graph.Connect(id, next, 0)
		}
	}
	if len(graph.Edges()) == 0 {
		return nil, ""
	}
	drop := graph.Edges()[random.IntN(len(graph.Edges()))]
	frozen, err := graph.Freeze(func(e dag.Edge) bool { return e != drop })
	if err != nil {
		panic(err) // part of an acyclic graph
	}
	mutant := *p
	mutant.Frozen = frozen
	all := append([]*submodules.Program(nil), progs...)
	all[rank] = &mutant
	return all, fmt.Sprintf("%s > %s", p.Label(p.Step(drop.From)), p.Label(p.Step(drop.To)))
}

// TestWhatIsAcceptedRunsRight drops random dependencies. What the checker still
// accepts must run right in every order tried; it does so where another path, or
// nothing at all, needs the dependency. The other way round only counts: one
// bad order among many isn't always met.
func TestWhatIsAcceptedRunsRight(t *testing.T) {
	const cases, mutants, orders = 200, 4, 12
	var accepted, refused, seen int
	for seed := range uint64(cases) {
		random := rand.New(rand.NewPCG(seed, 1))
		c, progs := smallCase(random)
		if _, err := check.Programs(progs); err != nil {
			t.Fatalf("seed %d: %v: %v", seed, c, err)
		}
		runs(t, seed, c, "nothing", progs, random, orders)
		for range mutants {
			mutant, dropped := dropEdge(progs, random)
			if dropped == "" {
				continue
			}
			if _, err := check.Programs(mutant); err == nil {
				accepted++
				runs(t, seed, c, dropped, mutant, random, orders)
				continue
			}
			refused++
			for range orders {
				if newMachine(mutant, random).run() != nil {
					seen++
					break
				}
			}
		}
	}
	t.Logf("%d mutants accepted, %d refused, of which %d went wrong in one of %d orders", accepted, refused, seen, orders)
	if accepted == 0 || refused == 0 || seen < refused/4 {
		t.Error("that says little about the checker")
	}
}

func runs(t *testing.T, seed uint64, c casegen.Case, dropped string, progs []*submodules.Program, random *rand.Rand, orders int) {
	t.Helper()
	for range orders {
		if err := newMachine(progs, random).run(); err != nil {
			t.Fatalf("seed %d: %v without %s: accepted, but %v", seed, c, dropped, err)
		}
	}
}
