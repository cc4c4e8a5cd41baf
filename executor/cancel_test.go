package executor_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

var errEnough = errors.New("had enough")

// inCall returns when all ranks but the given one wait in a call.
func inCall(ctx context.Context, w *executor.World, but int) {
	for r := range w.Size() {
		_ = clocktest.Await(ctx, func() bool { return r == but || len(w.Endpoint(levels.Rank(r)).Waiting()) > 0 })
	}
}

// broken checks that later calls on all ranks are refused and name the rank that
// failed.
func broken(t *testing.T, w *executor.World, runs []*executor.Run, cause error) {
	t.Helper()
	for r, run := range runs {
		for what, err := range map[string]error{
			"do":    run.Do(t.Context()),
			"start": run.Start(t.Context()),
			"send":  second(w.Endpoint(levels.Rank(r)).Comm(0).Send(t.Context(), 0, 0, 0, nil)),
		} {
			if !errors.Is(err, executor.ErrBroken) || !errors.Is(err, cause) {
				t.Errorf("rank %d, later %s: %v, want %v because of %v", r, what, err, executor.ErrBroken, cause)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A rank whose context is cancelled returns the context's cause, the others say
// which rank it was, whether anybody waits for their runs or not. All do so at once: nobody waits for a
// timer.
func TestCancel(t *testing.T) {
	const canceller, absent = 1, 3
	for _, waiting := range []string{"Do", "Start and Wait", "Start"} {
		t.Run(waiting, func(t *testing.T) {
			inBubble(t, 4, executor.Config{}, func(t *testing.T, w *executor.World) {
				runs, _ := sumsOn(t, w, "2x2", "shape=han,fs=64KiB,w=2,s=sm,i=adapt/chain", 0, 100_000)
				var asked time.Time
				errs := ranks(t, w, func(ctx context.Context, r int) error {
					mine, cancel := context.WithCancelCause(ctx)
					defer cancel(nil)
					switch {
					case r == absent:
						return nil
					case r == canceller:
						go func() {
							synctest.Wait() // the others are in the call
							asked = time.Now()
							cancel(errEnough)
						}()
					}
					if waiting == "Do" {
						return runs[r].Do(mine)
					}
					if err := runs[r].Start(mine); err != nil {
						return err
					}
					if waiting == "Start" {
						_ = clocktest.Await(ctx, func() bool { return len(w.Endpoint(levels.Rank(r)).Waiting()) == 0 })
					}
					return runs[r].Wait(mine)
				})
				most := time.Duration(0)
				if waiting == "Start" { // and looks at them every millisecond
					most = time.Millisecond
				}
				if took := time.Since(asked); took > most {
					t.Errorf("it took %v to end, want %v at most", took, most)
				}
				for r, err := range errs {
					switch {
					case r == absent:
					case r == canceller && !errors.Is(err, errEnough):
						t.Errorf("rank %d: %v, want %v", r, err, errEnough)
					case r != canceller && (!names(err, canceller) || !errors.Is(err, errEnough)):
						t.Errorf("rank %d: %v, want a PeerError of rank %d with %v", r, err, canceller, errEnough)
					}
				}
				broken(t, w, runs, errEnough)
			})
		})
	}
}

func TestCancelledBeforeStart(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	runs, bufs := sumsOn(t, w, "1x2", "shape=han,fs=64KiB,w=2,s=sm", 0, 4)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	do(t, w, runs)
	check(t, 0, bufs[0], sums(2, 4))
	if err := runs[0].Wait(ctx); err != nil {
		t.Errorf("waiting under a cancelled context for what has ended: %v", err)
	}
	do(t, w, runs)
	errs := ranks(t, w, func(long context.Context, r int) error {
		if r == 0 {
			return runs[0].Do(ctx)
		}
		return runs[1].Do(long)
	})
	for r, err := range errs {
		if !errors.Is(err, errEnough) {
			t.Errorf("rank %d: %v, want %v", r, err, errEnough)
		}
	}
	if err := w.Endpoint(0).Close(); err != nil {
		t.Fatal(err)
	}
	if err := runs[0].Do(ctx); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestWaitBeforeStart(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	runs, bufs := sumsOn(t, w, "1x2", "shape=han,fs=64KiB,w=2,s=sm", 0, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{ctx, t.Context()} {
		if err := runs[0].Wait(ctx); !errors.Is(err, executor.ErrNotStarted) {
			t.Errorf("got error %v, want %v", err, executor.ErrNotStarted)
		}
	}
	do(t, w, runs)
	check(t, 0, bufs[0], sums(2, 4))
	if err := runs[0].Wait(t.Context()); err != nil {
		t.Errorf("after a run: %v", err)
	}
}

// A context that ends after its run is of no concern to later ones.
func TestCancelledAfterTheEnd(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	runs, _ := sumsOn(t, w, "1x2", "shape=han,fs=64KiB,w=2,s=sm", 0, 4)
	for range 200 {
		succeed(t, w, func(ctx context.Context, r int) error {
			mine, cancel := context.WithCancel(ctx)
			defer cancel()
			if err := runs[r].Start(mine); err != nil {
				return err
			}
			err := runs[r].Wait(ctx)
			cancel()
			return err
		})
	}
}

// A long step that nothing interrupts is cut short: the operation itself cancels
// at its first element.
func TestCancelDuringALongStep(t *testing.T) {
	const n = 8 << 20
	h, p := parse(t, "1x2", "shape=han,fs=all,w=1,s=sm")
	w := newWorld(t, 2, executor.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := 0
	op := tasks.UserOp("count", true, func(a, b uint8) uint8 {
		if done++; done == 1 {
			cancel(errEnough)
		}
		return a + b
	})
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Uint8, Op: op, InPlace: true}, p}
	runs := j.bind(t, nil, [][]byte{make([]byte, n), make([]byte, n)})
	errs := ranks(t, w, func(long context.Context, r int) error {
		if r == 0 {
			return runs[0].Do(ctx)
		}
		return runs[1].Do(long)
	})
	if errs[0] != errEnough || !errors.Is(errs[1], errEnough) {
		t.Errorf("%v and %v, want %v", errs[0], errs[1], errEnough)
	}
	if most := 2 * 256 << 10; done > most {
		t.Errorf("%d of %d elements were combined after the context had ended, want %d at most", done, n, most)
	}
}

// What Run was given is the caller's again when it returns, also in the middle of
// everything.
func TestNothingIsWrittenAfterReturn(t *testing.T) {
	const n = 1 << 20
	for _, plan := range []string{
		"shape=han,fs=32KiB,w=4,s=sm,i=adapt/chain",
		"shape=han,fs=256KiB,w=2,s=adapt/binomial,i=adapt/binomial/16KiB",
	} {
		h, p := parse(t, "2x2", plan)
		for round := range 15 {
			w := local.New(h.Size(), executor.Config{})
			bufs := make([][]byte, h.Size())
			for r := range bufs {
				bufs[r] = make([]byte, n)
			}
			j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Uint8, Op: tasks.Sum, InPlace: true}, p}
			runs := j.bind(t, nil, bufs)
			mine, cancel := context.WithCancelCause(t.Context())
			canceller := rand.IntN(h.Size())
			pattern := bytes.Repeat([]byte{0x5a}, n)
			errs := ranks(t, w, func(ctx context.Context, r int) error {
				if r == canceller {
					go func() {
						for range 20 * round {
							runtime.Gosched()
						}
						cancel(errEnough)
					}()
					ctx = mine
				}
				var err error
				for err == nil {
					err = runs[r].Do(ctx)
				}
				copy(bufs[r], pattern)
				return err
			})
			for r, err := range errs {
				if !errors.Is(err, errEnough) {
					t.Fatalf("rank %d: %v", r, err)
				}
				if !bytes.Equal(bufs[r], pattern) {
					t.Fatalf("%s: rank %d's buffer was written after its return", plan, r)
				}
			}
			w.Close()
		}
	}
}
