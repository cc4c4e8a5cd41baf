package executor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// Of ranks one of which is late, the late one waits least: whichever it is, also if waiting ranks let another library
// go on, and if some of their calls are that library's.
func TestWaited(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		d := lateness{ranks: 2 + rnd.IntN(3), elsewhere: rnd.IntN(2) == 0}
		d.late = rnd.IntN(d.ranks)
		if rnd.IntN(2) == 0 {
			d.config.Progress = func() { clocktest.Pause(context.Background(), 100*time.Microsecond) }
		}
		d.check(t, seed)
	}
}

// lateness is a job with a late rank.
type lateness struct {
	ranks, late int
	config      executor.Config
	elsewhere   bool // each second call is another library's
}

// check runs the job in a bubble.
func (d lateness) check(t *testing.T, seed uint64) {
	t.Helper()
	var inOther atomic.Int64 // of rank watched, as the world's ranks share a process here
	watched := (d.late + int(seed)) % d.ranks
	d.config.Elsewhere = func() executor.Elsewhere { return executor.Elsewhere{Waited: time.Duration(inOther.Load())} }
	inBubble(t, d.ranks, d.config, func(t *testing.T, w *executor.World) {
		h, p := parse(t, fmt.Sprint(d.ranks), "shape=flat,fs=all,w=1,s=nbc")
		runs := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, Op: tasks.Sum}, p}.bind(t, raws(numbers(d.ranks, 3)), raws(numbers(d.ranks, 3)))
		done := make(chan error, d.ranks)
		meet := make(chan bool)
		for r, run := range runs {
			go func() {
				for k := range 10 {
					if r == d.late {
						clocktest.Pause(t.Context(), 20*time.Millisecond)
					}
					if !d.elsewhere || k%2 == 0 {
						if err := run.Do(t.Context()); err != nil {
							done <- err
							return
						}
						continue
					}
					began := time.Now()
					if r != d.late {
						<-meet
					} else {
						for range d.ranks - 1 {
							meet <- true
						}
					}
					if r == watched {
						inOther.Add(int64(time.Since(began)))
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
		is := w.Endpoint(levels.Rank(watched)).Activity(1, func(levels.Rank) int { return 0 }).Waited
		if watched == d.late && is > 50*time.Millisecond || watched != d.late && is < 150*time.Millisecond {
			t.Errorf("seed %d: rank %d of %d has waited %v; rank %d was late by 200 ms", seed, watched, d.ranks, is, d.late)
		}
	})
}
