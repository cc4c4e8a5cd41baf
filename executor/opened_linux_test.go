package executor_test

import (
	"testing"

	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/tasks"
)

// Ranks open what the plan's edges need, not a connection to everyone: a chain of n
// ranks has n-1 edges. Two ranks that dial each other at the same time have two
// connections.
func TestOpensWhatThePlanNeeds(t *testing.T) {
	for _, test := range []struct {
		topo, plan   string
		pairs, rings int // at most
	}{
		{"8x1", "shape=han,fs=16KiB,w=4,i=adapt/chain,s=sm", 7, 0},
		{"8x1", "shape=han,fs=16KiB,w=4,i=adapt/binomial,s=sm", 7, 0},
		{"1x8", "shape=han,fs=16KiB,w=4,i=adapt/chain,s=adapt/chain", 0, 14}, // data and credit
		{"4x2", "shape=han,fs=16KiB,w=4,i=adapt/chain,s=adapt/chain", 3, 8},
	} {
		h, p := parse(t, test.topo, test.plan)
		w, err := NewProcesses(h, proc.Config{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := tasks.Request{Coll: tasks.Bcast, Count: 100_000, Type: tasks.Int32}
		if pairs, connections, rings := w.Opened(); pairs+connections+rings > 0 {
			t.Errorf("%s: before the first call %d pairs have %d connections, and there are %d rings", test.topo, pairs, connections, rings)
		}
		runs := job{w.World, h, r, p}.bind(t, nil, raws(numbers(h.Size(), int(r.Count))))
		for range 3 {
			do(t, w.World, runs)
		}
		pairs, connections, rings := w.Opened()
		if pairs != test.pairs || connections > 2*pairs || rings != test.rings {
			t.Errorf("%s with %s: %d pairs of ranks have %d connections, and there are %d rings; the plan needs %d pairs and %d rings",
				test.topo, test.plan, pairs, connections, rings, test.pairs, test.rings)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
