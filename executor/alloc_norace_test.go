//go:build !race

package executor_test

import (
	"context"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// A run allocates nothing on any rank. An inbox grows with the distance between ranks, a few times in all,
// which are fewer than the runs. With the race detector calls allocate.
func TestRunAllocatesNothing(t *testing.T) {
	for _, test := range []struct {
		topo, plan string
		config     executor.Config
	}{
		{"2x2", "shape=han,fs=16KiB,w=2,s=sm,i=adapt/chain", executor.Config{}},
		{"2x2", "shape=han,fs=16KiB,w=2,s=adapt,i=adapt/chain/1KiB", executor.Config{}},
		{"2x2", "shape=han,fs=1KiB,w=2,s=adapt,i=adapt/binomial", executor.Config{EagerBudget: 1200}},
		{"1x4", "shape=han,fs=8B,w=4,s=sm", executor.Config{}}, // in passes
		{"4x1", "shape=flat,fs=8B,w=4,i=adapt", executor.Config{}},
	} {
		h, p := parse(t, test.topo, test.plan)
		const n = 2100
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		w := newWorld(t, h.Size(), test.config)
		sum := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}, p}.bind(t, nil, raws(numbers(4, n)))
		bcast := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Int32, Root: 2}, p}.bind(t, nil, raws(numbers(4, n)))
		plus := tasks.UserOp("plus", true, func(a, b int32) int32 { return a + b })
		fold := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Int32, Op: plus, InPlace: true}, p}.bind(t, nil, raws(numbers(4, n)))
		barrier := job{w, h, tasks.Request{Coll: tasks.Barrier}, p}.bind(t, nil, make([][]byte, 4))
		m := newTeam(h.Size(), func(r int) error {
			for _, run := range []*executor.Run{sum[r], bcast[r], fold[r], barrier[r]} {
				if err := run.Do(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		for range 10 {
			m.once()
		}
		if got := testing.AllocsPerRun(200, m.once); got > 0 {
			t.Errorf("%s with %s: %v allocations per run", test.topo, test.plan, got)
		}
		m.dismiss(t)
		cancel()
	}
}
