package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

func TestOperationPanics(t *testing.T) {
	h, p := parse(t, "2x2", "shape=han,fs=1KiB,w=2,s=sm,i=adapt/chain")
	w := newWorld(t, h.Size(), executor.Config{})
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 1000, Type: tasks.Int32, InPlace: true}, p}
	runs := make([]*executor.Run, h.Size())
	for r := range runs {
		j.request.Op = tasks.UserOp("fold", true, func(a, b int32) int32 {
			if r == 2 && b == 7 {
				panic("seven")
			}
			return a + b
		})
		buf := make([]int32, 1000)
		buf[600] = 7
		runs[r] = j.bindOne(t, w.Endpoint(levels.Rank(r)).Comm(0), nil, raw(buf))
	}
	errs := ranks(t, w, func(ctx context.Context, r int) error { return runs[r].Do(ctx) })
	for r, err := range errs {
		var step *executor.StepError
		var peer *executor.PeerError
		if !errors.As(err, &step) || step.Rank != 2 || step.Request != "allreduce 1000 i32 fold" ||
			step.Step != "sr#2 reduce r2 1KiB" || !strings.Contains(step.Error(), "seven") {
			t.Errorf("rank %d: %v, want the failed step", r, err)
		}
		if is := errors.As(err, &peer); is != (r != 2) || is && peer.Rank != 2 {
			t.Errorf("rank %d: %v, want a PeerError on all but rank 2", r, err)
		}
	}
}

// barriers binds one barrier run per rank.
func barriers(t failer, w *executor.World, topo string) []*executor.Run {
	h, p := parse(t, topo, "shape=han,fs=all,w=1,s=sm,i=adapt/chain")
	return job{w, h, tasks.Request{Coll: tasks.Barrier}, p}.bind(t, nil, make([][]byte, h.Size()))
}

// A rank may leave as soon as its own part is done.
func TestCloseAhead(t *testing.T) {
	h, p := parse(t, "2x2", "shape=han,fs=64B,w=1,s=adapt,i=adapt/chain")
	w := newWorld(t, 4, executor.Config{})
	bufs := numbers(4, 100)
	want := numbers(4, 100)[0]
	runs := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 100, Type: tasks.Int32}, p}.bind(t, nil, raws(bufs))
	left := make(chan bool)
	succeed(t, w, func(ctx context.Context, r int) error {
		if r != 0 {
			<-left
		}
		for range 3 {
			if err := runs[r].Do(ctx); err != nil {
				return err
			}
		}
		if r == 0 {
			defer close(left)
		}
		return w.Endpoint(levels.Rank(r)).Close()
	})
	for r := range bufs {
		check(t, r, bufs[r], want)
	}
}

// Runs that a rank which has left took no part in fail, and say so.
func TestCloseEarly(t *testing.T) {
	w := newWorld(t, 4, executor.Config{})
	runs := barriers(t, w, "2x2")
	const leaver = 2
	errs := ranks(t, w, func(ctx context.Context, r int) error {
		for range 3 {
			// A rank that is already in the fourth run ends the third of others too.
			if err := runs[r].Do(ctx); err != nil {
				return err
			}
		}
		if r == leaver {
			return w.Endpoint(leaver).Comm(0).Close()
		}
		return runs[r].Do(ctx)
	})
	for r, err := range errs {
		var peer *executor.PeerError
		switch {
		case r == leaver:
			if err != nil {
				t.Errorf("Close: %v", err)
			}
		case !errors.As(err, &peer) || !errors.Is(err, executor.ErrClosed):
			t.Errorf("rank %d: %v, want a PeerError with %v", r, err, executor.ErrClosed)
		}
	}
	c := w.Endpoint(leaver).Comm(0)
	if err := c.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	for what, err := range map[string]error{
		"do": runs[leaver].Do(t.Context()), "start": runs[leaver].Start(t.Context()),
		"send": second(c.Send(t.Context(), 0, 0, 0, nil)), "receive": second(c.Recv(t.Context(), 0, 0, 0, nil)),
	} {
		if !errors.Is(err, executor.ErrClosed) || errors.Is(err, executor.ErrBroken) {
			t.Errorf("%s after Close: %v, want %v", what, err, executor.ErrClosed)
		}
	}
}

// A rank that has done its part may leave while the others are still in that run, and
// one of them even in the next. The first run ends well. The next fails on each rank
// that comes to it, and messages between the others go on.
func TestCloseBetweenRunsOfOthers(t *testing.T) {
	for _, plan := range []string{"shape=flat,fs=all,w=1,s=adapt/chain,i=adapt", "shape=flat,fs=1KiB,w=4,s=adapt/chain,i=adapt", "shape=han,fs=1KiB,w=2,s=solo"} {
		t.Run(plan, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p := parse(t, "1x3", plan)
				w := local.New(3, executor.Config{})
				defer w.Close()
				const leaver, count = 2, 50_000
				bufs := numbers(3, count)
				want := slices.Clone(bufs[leaver])
				first := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: count, Type: tasks.Int32, Root: leaver}, p}.bind(t, nil, raws(bufs))
				next := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: count, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}, p}.bind(t, nil, raws(numbers(3, count)))
				errs := ranks(t, w, func(ctx context.Context, r int) error {
					if r != 1 {
						if err := first[r].Start(ctx); err != nil {
							return err
						}
					}
					switch r {
					case leaver:
						if err := first[r].Wait(ctx); err != nil {
							return err
						}
						return w.Endpoint(leaver).Close()
					case 0:
						if err := next[r].Start(ctx); err != nil {
							return err
						}
					case 1:
						clocktest.Pass(300 * time.Millisecond)
						if err := first[r].Start(ctx); err != nil {
							return err
						}
					}
					if err := first[r].Wait(ctx); err != nil {
						return fmt.Errorf("the run that all took part in: %w", err)
					}
					wait := next[r].Wait
					if r == 1 {
						wait = next[r].Do
					}
					err := wait(ctx)
					if !names(err, leaver) || !errors.Is(err, executor.ErrClosed) {
						return fmt.Errorf("the next run: %v, want that rank %d has left", err, leaver)
					}
					if err := next[r].Do(ctx); !errors.Is(err, executor.ErrBroken) || !names(err, leaver) {
						return fmt.Errorf("and again: %v", err)
					}
					if r == 0 {
						return send(ctx, w, 0, 1, 5, []byte("still there"))
					}
					_, err = recv(ctx, w, 1, 0, 5, make([]byte, 100))
					return err
				})
				for r, err := range errs {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
					check(t, r, bufs[r], want)
				}
			})
		})
	}
}

// A rank that has left is not waited for in a run that it thought it had ended.
func TestLeftThinkingItWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, p := parse(t, "2x1", "shape=flat,fs=all,w=1,i=adapt/chain")
		w := local.New(2, executor.Config{})
		defer w.Close()
		j := job{w, h, tasks.Request{Coll: tasks.Bcast, Type: tasks.Int32}, p}
		b, err := j.compile(0)
		if err != nil {
			t.Fatal(err)
		}
		digest := b.Digest
		b, err = job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, p}.compile(1)
		if err != nil {
			t.Fatal(err)
		}
		b.Digest, b.Recv = digest, make([]byte, 12) // a hash that collides: no mismatch shows
		waiting, err := w.Endpoint(1).Comm(0).Bind(b)
		if err != nil {
			t.Fatal(err)
		}
		errs := ranks(t, w, func(ctx context.Context, r int) error {
			if r == 1 {
				return waiting.Do(ctx)
			}
			none := j.bind(t, nil, make([][]byte, 2))
			if err := none[0].Do(ctx); err != nil {
				return err
			}
			return w.Endpoint(0).Close()
		})
		if errs[0] != nil {
			t.Error(errs[0])
		}
		if !names(errs[1], 0) || !errors.Is(errs[1], executor.ErrClosed) {
			t.Errorf("%v, want that rank 0 has left", errs[1])
		}
	})
}

func TestCloseDuringARun(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	runs := barriers(t, w, "1x2")
	if err := runs[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Endpoint(0).Close(); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("Close during a run: %v", err)
	}
	var peer *executor.PeerError
	if err := runs[0].Wait(t.Context()); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("the run: %v", err)
	}
	if err := runs[1].Do(t.Context()); !errors.As(err, &peer) || peer.Rank != 0 || !errors.Is(err, executor.ErrClosed) {
		t.Errorf("the other rank: %v", err)
	}
}

func TestWorldClose(t *testing.T) {
	w := local.New(2, executor.Config{})
	runs := barriers(t, w, "1x2")
	if err := runs[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := runs[0].Wait(t.Context()); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("the run that was on its way: %v", err)
	}
	if err := runs[1].Do(t.Context()); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("a run after Close: %v", err)
	}
}

// A failure on one communicator leaves the others alone.
func TestFailureStaysOnItsCommunicator(t *testing.T) {
	w := newWorld(t, 4, executor.Config{EagerBudget: 200})
	reverse(w)
	const plan = "shape=han,fs=64B,w=1,s=adapt,i=adapt/chain"
	lost, _ := sumsOn(t, w, "2x2", plan, 1, 100)
	kept, bufs := sumsOn(t, w, "2x2", plan, 0, 100)
	ctx, cancel := context.WithCancelCause(t.Context())
	errs := ranks(t, w, func(long context.Context, r int) error {
		switch r {
		case 3: // comes to the first of them only
			inCall(long, w, 3)
			cancel(errEnough)
			return nil
		case 0:
			return lost[0].Do(ctx)
		}
		return lost[r].Do(long)
	})
	for r := range 3 {
		if !errors.Is(errs[r], errEnough) {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
	do(t, w, kept)
	for r := range bufs {
		check(t, r, bufs[r], sums(4, 100))
	}
}

func TestFailEndsEverything(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	reverse(w)
	runs := barriers(t, w, "1x2")
	failed := make(chan bool)
	go func() {
		defer close(failed)
		_ = clocktest.Await(t.Context(), func() bool { return len(w.Endpoint(0).Waiting()) > 0 })
		w.Fail(1, errEnough)
	}()
	if err := runs[0].Do(t.Context()); !names(err, 1) || !errors.Is(err, errEnough) {
		t.Errorf("the waiting rank: %v", err)
	}
	<-failed // one communicator after the other
	if _, err := w.Endpoint(0).Comm(1).Send(t.Context(), 0, 0, 0, nil); !errors.Is(err, errEnough) {
		t.Errorf("the other communicator: %v", err)
	}
}
