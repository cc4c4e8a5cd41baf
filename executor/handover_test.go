package executor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// manyBarriers binds n barriers on both ranks of a world.
func manyBarriers(t failer, w *executor.World, n int) (first, second []*executor.Run) {
	for range n {
		runs := barriers(t, w, "1x2")
		first, second = append(first, runs[0]), append(second, runs[1])
	}
	return first, second
}

// startAll starts runs in their order.
func startAll(t *testing.T, runs []*executor.Run) {
	t.Helper()
	for _, r := range runs {
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Many goroutines wait for different runs of one rank. One of them drives; when
// its run has ended another takes over, and each returns as soon as its own run
// has ended. The clock is the bubble's: exact.
func TestEachWaiterReturnsWithItsRun(t *testing.T) {
	const n = 10
	for _, order := range []string{"first", "last"} { // who waits first, and so drives
		inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
			mine, theirs := manyBarriers(t, w, n)
			startAll(t, mine)
			begin := time.Now()
			waits := make([]int, n)
			for i := range waits {
				waits[i] = i
			}
			if order == "last" {
				slices.Reverse(waits)
			}
			var all sync.WaitGroup
			for _, i := range waits {
				all.Go(func() {
					if err := mine[i].Wait(t.Context()); err != nil {
						t.Errorf("run %d: %v", i, err)
					}
					if took, want := time.Since(begin), time.Duration(i+1)*time.Second; took != want {
						t.Errorf("the waiter for run %d returned after %v, want %v", i, took, want)
					}
				})
				synctest.Wait()
			}
			for _, r := range theirs {
				clocktest.Pass(time.Second)
				if err := r.Do(t.Context()); err != nil {
					t.Error(err)
				}
			}
			all.Wait()
		})
	}
}

// Started runs go on without anybody in Wait; a waiter that comes later takes over
// from the background.
func TestBackgroundDrives(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		mine, theirs := manyBarriers(t, w, 4)
		startAll(t, mine)
		for i := range 2 {
			clocktest.Pass(time.Second)
			if err := theirs[i].Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := len(w.Endpoint(0).Waiting()); n != 3-i {
				t.Fatalf("%d runs are on their way, want %d: nobody has driven", n, 3-i)
			}
		}
		if waited := w.Endpoint(0).Activity(1, func(levels.Rank) int { return 0 }).Waited; waited != 0 {
			t.Errorf("%v with a goroutine that waits; nobody did", waited)
		}
		done := make(chan error)
		go func() { done <- mine[3].Wait(t.Context()) }()
		synctest.Wait()
		startAll(t, theirs[2:])
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the background of rank 1 ends too: nothing is on its way
		for r := range 2 {
			if left := w.Endpoint(levels.Rank(r)).Waiting(); len(left) > 0 {
				t.Errorf("still on their way: %v", left)
			}
		}
	})
}

// Several goroutines may wait for the same run.
func TestSharedWait(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		mine, theirs := manyBarriers(t, w, 1)
		if err := mine[0].Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := mine[0].Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := theirs[0].Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
	})
}

// A waiter that doesn't drive sees the end of its context at once, and so do all
// others on the communicator.
func TestCancelledWaiter(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		mine, _ := manyBarriers(t, w, 3)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 1234*time.Millisecond, errEnough)
		defer cancel()
		begin := time.Now()
		var all sync.WaitGroup
		for i, r := range mine {
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				in := t.Context()
				if i == 1 {
					in = ctx
				}
				if err := r.Wait(in); !errors.Is(err, errEnough) {
					t.Errorf("waiter %d: %v, want %v", i, err, errEnough)
				}
				if took := time.Since(begin); took != 1234*time.Millisecond {
					t.Errorf("waiter %d returned after %v", i, took)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// Ranks that wait for each other's root find out by the second tick.
func TestDisagreementIsFoundInTime(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		runs := [2]*executor.Run{crossed(t, w, 1)[0], crossed(t, w, 0)[1]}
		begin := time.Now()
		var all sync.WaitGroup
		for _, r := range runs {
			all.Go(func() {
				if err := r.Do(t.Context()); !errors.Is(err, executor.ErrMismatch) {
					t.Errorf("%v, want %v", err, executor.ErrMismatch)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took > 300*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// Close waits for the goroutine that drives in the background.
func TestCloseEndsTheDriver(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		mine, _ := manyBarriers(t, w, 1)
		startAll(t, mine)
		synctest.Wait()
		began := time.Now()
		_ = w.Close() // the barrier has not ended
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %v", took)
		}
	})
}
