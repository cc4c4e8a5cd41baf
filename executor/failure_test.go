package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
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
		b, err := j.compile(levels.Rank(r))
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]int32, 1000)
		buf[600] = 7
		b.Recv = raw(buf)
		if runs[r], err = w.Endpoint(levels.Rank(r)).Comm(0).Bind(b); err != nil {
			t.Fatal(err)
		}
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
		"send": second(c.Send(t.Context(), 0, 0, nil)), "receive": second(c.Recv(t.Context(), 0, 0, nil)),
	} {
		if !errors.Is(err, executor.ErrClosed) || errors.Is(err, executor.ErrBroken) {
			t.Errorf("%s after Close: %v, want %v", what, err, executor.ErrClosed)
		}
	}
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
	w := executor.NewWorld(2, executor.Config{})
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
	h, p := parse(t, "2x2", "shape=han,fs=64B,w=1,s=adapt,i=adapt/chain")
	bufs := numbers(4, 100)
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 100, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}, p}
	lost, kept := j.bindOn(t, 1, nil, raws(numbers(4, 100))), j.bindOn(t, 0, nil, raws(bufs))
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
	go func() {
		time.Sleep(time.Millisecond)
		w.Fail(1, errEnough)
	}()
	var peer *executor.PeerError
	if err := runs[0].Do(t.Context()); !errors.As(err, &peer) || peer.Rank != 1 || !errors.Is(err, errEnough) {
		t.Errorf("the waiting rank: %v", err)
	}
	if _, err := w.Endpoint(0).Comm(1).Send(t.Context(), 0, 0, nil); !errors.Is(err, errEnough) {
		t.Errorf("the other communicator: %v", err)
	}
}
