package executor_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// The most urgent run goes first, and of equal ones the first that was started.
func TestUrgency(t *testing.T) {
	const n = 256 << 10
	for _, c := range []struct {
		urgency []int32 // by run, in the order of starts
		want    []uint32
	}{
		{[]int32{0, 0, 0, 0}, []uint32{0, 1, 2, 3}},
		{[]int32{0, -1, 5, 0}, []uint32{2, 0, 3, 1}},
		{[]int32{1, 2, 3, 4}, []uint32{3, 2, 1, 0}},
		{[]int32{0, -1, -2, -3}, []uint32{0, 1, 2, 3}},
	} {
		var mu sync.Mutex
		var ended []uint32
		w := newWorld(t, 2, executor.Config{Hooks: trace.Hooks{Run: func(e trace.Event) {
			if e.Rank == 0 {
				mu.Lock()
				ended = append(ended, e.Run)
				mu.Unlock()
			}
		}}})
		h, p := parse(t, "2", "shape=flat,fs=all,w=4,s=adapt/binomial")
		j := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Uint8}, p}
		var runs [][]*executor.Run
		start := func(rank levels.Rank) {
			for _, r := range runs {
				if err := r[rank].Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, u := range c.urgency {
			all := j.bind(t, nil, raws(numbers(2, n/4)))
			if err := all[0].SetUrgency(u); err != nil {
				t.Fatal(err)
			}
			runs = append(runs, all)
		}
		start(0) // and nothing leaves without credit
		w.Endpoint(0).Hold(func(wire.Sink) {
			start(1)
			w.Endpoint(1).Poll() // else a start that met a driver leaves its credit to it, for later
		}) // the root hears of all credits at once
		for _, r := range runs {
			for _, one := range r {
				if err := one.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.Equal(ended, c.want) {
			t.Errorf("urgencies %v: the calls ended in the order %v, want %v", c.urgency, ended, c.want)
		}
		if err := runs[0][0].SetUrgency(1); err != nil {
			t.Error(err)
		}
	}
}
