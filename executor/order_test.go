package executor_test

import (
	"sync"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Credits that come in one bunch are served in their order: the first segment of a
// pipeline leaves first.
func TestSendsInOrderOfCredits(t *testing.T) {
	if invariants.On {
		t.Skip("ready steps run in random order with the tag invariants")
	}
	const segments = 8
	h, p := parse(t, "2", "shape=flat,fs=8KiB,w=8,s=adapt/chain")
	var mu sync.Mutex
	var ended []int32
	w := newWorld(t, 2, executor.Config{Hooks: trace.Hooks{Step: func(e trace.Event) {
		if e.Rank == 0 {
			mu.Lock()
			ended = append(ended, e.Step)
			mu.Unlock()
		}
	}}})
	j := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: segments * 8 << 10, Type: tasks.Uint8}, p}
	runs := j.bind(t, nil, raws(numbers(2, segments*8<<10/4)))
	root, err := j.compile(0)
	if err != nil {
		t.Fatal(err)
	}
	prog := root.Rest
	if root.Passes > 0 {
		prog = root.Whole
	}
	for range 10 {
		ended = ended[:0]
		do(t, w, runs)
		last, sends := int64(-1), 0
		for _, id := range ended {
			s := prog.Step(dag.ID(id))
			if s.Kind != submodules.SendStep {
				continue
			}
			if s.A.Off < last {
				t.Fatalf("the segment at %d left after the one at %d", s.A.Off, last)
			}
			last, sends = s.A.Off, sends+1
		}
		if sends != segments {
			t.Fatalf("%d sends, want %d", sends, segments)
		}
	}
}
