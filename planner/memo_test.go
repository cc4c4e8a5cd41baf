package planner

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// drawnRequest is one of few, and of those some are alike in all that [slot] looks at.
func drawnRequest(rng *rand.Rand) tasks.Request {
	return tasks.Request{
		Coll: tasks.Bcast, Count: rng.Int64N(60), Type: tasks.Float32, Root: levels.Rank(rng.IntN(2)), InPlace: rng.IntN(2) == 0, Pitch: rng.Int64N(2),
	}
}

// A memo finds what a map would, until it is full and forgets all.
func TestMemo(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 5))
	m, twin, forgot := &memo{}, map[tasks.Request]*choose.Decision{}, 0
	for range 20_000 {
		r := drawnRequest(rng)
		switch rng.IntN(40) {
		case 0:
			if rng.IntN(200) == 0 {
				m.forget()
				clear(twin)
			}
		case 1, 2, 3:
			d := &choose.Decision{}
			if len(twin) == mostSlots/2 {
				clear(twin)
				forgot++
			}
			m.put(r, d)
			twin[r] = d
		default:
			if got := m.find(&r); got != twin[r] {
				t.Fatalf("%v: %p, want %p", r, got, twin[r])
			}
		}
	}
	if forgot == 0 {
		t.Error("it was never full")
	}
}

// Goroutines that look while others put find what was put, or nothing.
func TestMemoAtOnce(t *testing.T) {
	m := &memo{}
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(34, seed))
			for range 2000 {
				r := drawnRequest(rng)
				if d := m.find(&r); d != nil && d.Plan.Window != int(r.Count)+1 {
					t.Errorf("%v: the decision of another request", r)
				}
				m.put(r, &choose.Decision{Plan: tasks.Plan{Window: int(r.Count) + 1}})
			}
		})
	}
	all.Wait()
}
