package priced_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// No plan is simulated faster than the bound of the wire, and some are near it.
func TestLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	near := 0
	for range 60 {
		m := machinetest.Speeds[rng.IntN(len(machinetest.Speeds))].Machine()
		on := tasktest.Topology(t, []string{"2x1", "5x1", "2x3", "4x2", "a:3,b:1,c:2", "2x2x2", "3x2/rr"}[rng.IntN(7)])
		coll := tasks.Requestable()[rng.IntN(len(tasks.Requestable()))]
		r := tasktest.Request(coll, 4*(1+rng.Int64N(1<<rng.IntN(20))))
		if r.Rooted() {
			r.Root = levels.Rank(rng.IntN(on.Size()))
		}
		least := price.Least(m, on, r)
		asked := builtin.Ask(r, on)
		ruled, _ := asked.Choose(tasks.Plan{})
		some := plans.All(asked, ruled, all.Submodules())
		rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		for _, p := range some[:min(len(some), 8)] {
			ns := simulated(t, m, r, on, p)
			if ns < least {
				t.Errorf("%v on %v: %v takes %.0f ns, and no plan less than %.0f", r, on, p, ns, least)
			}
			if ns < 1.3*least {
				near++
			}
		}
	}
	if near < 10 {
		t.Errorf("%d plans are near the bound, want ten at least: does it bound anything?", near)
	}
}
