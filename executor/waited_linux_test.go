package executor_test

import (
	"context"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// Of ranks one of which is late, the late one waits least, also if waiting ranks let another library go on.
func TestWaited(t *testing.T) {
	waits(t, executor.Config{})
	waits(t, executor.Config{Progress: func() { clocktest.Pause(context.Background(), 100*time.Microsecond) }})
}

func waits(t *testing.T, config executor.Config) {
	t.Helper()
	inBubble(t, 3, config, func(t *testing.T, w *executor.World) {
		h, p := parse(t, "3", "shape=flat,fs=all,w=1,s=nbc")
		runs := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, Op: tasks.Sum}, p}.bind(t, raws(numbers(3, 3)), raws(numbers(3, 3)))
		done := make(chan error, 3)
		for r, run := range runs {
			go func() {
				for range 10 {
					if r == 1 {
						clocktest.Pause(t.Context(), 20*time.Millisecond)
					}
					if err := run.Do(t.Context()); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range runs {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		var waited [3]time.Duration
		for r := range waited {
			waited[r] = w.Endpoint(levels.Rank(r)).Activity(1, func(levels.Rank) int { return 0 }).Waited
		}
		if waited[0] < 100*time.Millisecond || waited[2] < 100*time.Millisecond || waited[1] > waited[0]/2 {
			t.Errorf("waited %v; rank 1 was late by 200 ms", waited)
		}
	})
}
