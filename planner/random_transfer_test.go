package planner_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/planner"
)

// activeTransfer is one end of a message.
type activeTransfer[T comparable] struct {
	p    *randomPlayer
	o    *randomOp
	m    *randomMessage
	e    *elements[T]
	buf  *guarded[T]
	sent bool
	got  int
}

func (e *elements[T]) transfer(p *randomPlayer, o *randomOp) randomTransfer {
	t := &activeTransfer[T]{p: p, o: o, m: o.msg, e: e, sent: o.kind == sendOp}
	n := t.m.room
	if t.sent {
		n = t.m.n
	}
	t.buf, _ = e.newGuarded(p, n, false, mix(p.p.seed, uint64(o.id), uint64(o.kind)))
	if t.sent {
		for i := range t.buf.data {
			t.buf.data[i] = t.given(i)
		}
	}
	return t
}

func (t *activeTransfer[T]) given(i int) T {
	return t.e.value(mix(t.p.p.seed + uint64(t.o.id<<32+i)))
}

func (t *activeTransfer[T]) now(ctx context.Context) (err error) {
	if t.sent {
		return planner.Send(ctx, t.p.comm, t.m.to, t.m.tag, t.buf.data)
	}
	t.got, err = planner.Recv(ctx, t.p.comm, t.m.from, t.m.tag, t.buf.data)
	return err
}

func (t *activeTransfer[T]) start(ctx context.Context) (wait func() error, err error) {
	var tr *planner.Transfer
	if t.sent {
		tr, err = planner.StartSend(ctx, t.p.comm, t.m.to, t.m.tag, t.buf.data)
	} else {
		tr, err = planner.StartRecv(ctx, t.p.comm, t.m.from, t.m.tag, t.buf.data)
	}
	if err != nil {
		return nil, err
	}
	return func() (err error) {
		t.got, err = tr.Wait(ctx)
		return err
	}, nil
}

// over checks what the transfer has left behind.
func (t *activeTransfer[T]) over(err error) {
	if verdict := t.verdict(err); verdict != nil {
		t.p.wrong("%v on rank %d of %d, error %v: %w", t.o, t.p.me, t.p.size(), err, verdict)
	}
	t.buf.let(t.p, fmt.Sprint(t.o), err != nil)
}

func (t *activeTransfer[T]) verdict(err error) error {
	if err := t.buf.touched(0, 0); err != nil {
		return err
	}
	if t.sent {
		for i, got := range t.buf.data {
			if want := t.given(i); got != want {
				return fmt.Errorf("element %d that is sent was changed: %v, was %v", i, got, want)
			}
		}
		return nil
	}
	switch {
	case err == nil && t.m.truncated:
		return fmt.Errorf("received %d elements without an error, there are %d and room for %d", t.got, t.m.n, t.m.room)
	case errors.Is(err, planner.ErrTruncated) && !t.m.truncated:
		return errors.New("there is room for it")
	case err != nil:
		return nil
	case t.got != t.m.n:
		return fmt.Errorf("received %d elements, want %d", t.got, t.m.n)
	}
	for i, got := range t.buf.data[:t.got] {
		if want := t.given(i); got != want {
			return fmt.Errorf("element %d of %d is %v, want %v", i, t.got, got, want)
		}
	}
	return t.buf.touched(t.got, len(t.buf.data))
}
