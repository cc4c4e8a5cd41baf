package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// vigil keeps the rendezvous connections open while the tree grows. A rank that dies
// or fails meanwhile has no neighbours yet, or not all, who would notice: rank 0
// does, and tells all.
type vigil interface {
	// watch begins; fail is called if the join has failed elsewhere.
	watch(fail context.CancelCauseFunc)
	// end tells the others what came of the join here, and returns why it failed: at
	// its root, as far as rank 0 knows that, else err. ctx is the caller's.
	end(ctx context.Context, err error) error
}

const (
	// verdictTime is how long a rank whose join failed waits for rank 0 to say why: it
	// may have lost a rank that only left because another one died.
	verdictTime = 500 * time.Millisecond
	// sayingWhy bounds sending the news.
	sayingWhy = time.Second
)

// alone has nobody to watch.
type alone struct{}

func (alone) watch(context.CancelCauseFunc)          {}
func (alone) end(_ context.Context, err error) error { return err }

// guestVigil is the vigil of all ranks but 0.
type guestVigil struct {
	conn    net.Conn
	self    levels.Rank
	over    chan struct{} // closed when rank 0 has said something, or is gone
	verdict error         // set before; nil: the join stands
}

func (g *guestVigil) watch(fail context.CancelCauseFunc) {
	g.over = make(chan struct{})
	go func() { // end waits for it
		defer close(g.over)
		if g.verdict = g.hear(); g.verdict != nil {
			fail(g.verdict)
		}
	}()
}

// hear waits for rank 0's word.
func (g *guestVigil) hear() error {
	f, err := readFrame(g.conn, levels.MaxRanks, MaxPayload)
	switch {
	case err != nil:
		return &PeerError{0, fmt.Errorf("%w: its rendezvous connection ended", ErrLost)}
	case f.kind == frameGoodbye:
		return nil
	case f.kind == frameFailure:
		return parseFailure(&f)
	}
	return &PeerError{0, fmt.Errorf("frame of kind %d at the end of the rendezvous", f.kind)}
}

func (g *guestVigil) end(ctx context.Context, err error) error {
	if err == nil {
		f := frame{kind: frameGoodbye, from: g.self}
		deliver(g.conn, f.encode(), time.Now().Add(sayingWhy))
		g.conn.Close()
		<-g.over
		return nil
	}
	deliver(g.conn, failureFrame(frameFailure, signed(err, g.self)), time.Now().Add(sayingWhy))
	patience := verdictTime
	if errors.Is(ctx.Err(), context.Canceled) {
		patience = 0 // the caller's reason is the one
	}
	var verdict error
	select {
	case <-g.over:
		verdict = g.verdict
	case <-time.After(patience):
	}
	g.conn.Close()
	<-g.over
	return reached(ctx, verdict, err)
}

// hostVigil is rank 0's.
type hostVigil struct {
	*host
	stop    chan struct{}
	stopped chan struct{} // closed when watch has ended
	over    chan struct{} // closed with the first failure of another rank
	verdict error         // that one; set before
}

func (v *hostVigil) watch(fail context.CancelCauseFunc) {
	v.stop, v.stopped, v.over = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { // end waits for it
		defer close(v.stopped)
		for {
			select {
			case <-v.stop:
				return
			case e := <-v.events:
				if err := v.judge(e); err != nil && v.verdict == nil {
					v.verdict = err
					v.toAll(failureFrame(frameFailure, err), time.Now().Add(sayingWhy))
					close(v.over)
					fail(err)
				}
			}
		}
	}()
}

// judge is why the join fails with what happened on a connection, nil if it doesn't.
func (v *hostVigil) judge(e event) error {
	switch {
	case e.peer != nil: // it came too late; the next join may be its
		e.conn.Close()
	case e.why != nil:
		return e.why
	case e.gone != nil && v.conns[e.gone.Rank] == e.conn:
		v.conns[e.gone.Rank] = nil
		if !e.left {
			return &JoinError{
				Ranks:  []levels.Rank{e.gone.Rank},
				Reason: fmt.Sprintf("rank %d (%s) was lost while the ranks connected", e.gone.Rank, e.gone.where()),
			}
		}
	}
	return nil
}

func (v *hostVigil) end(ctx context.Context, err error) error {
	if errors.Is(err, ErrLost) {
		select {
		case <-v.over:
		case <-time.After(verdictTime / 5): // the others wait for rank 0
		}
	}
	close(v.stop)
	<-v.stopped
	switch {
	case err == nil:
		f := frame{kind: frameGoodbye, to: everyone}
		v.toAll(f.encode(), time.Now().Add(sayingWhy))
	case v.verdict == nil:
		v.toAll(failureFrame(frameFailure, signed(err, 0)), time.Now().Add(sayingWhy))
	default:
		err = reached(ctx, v.verdict, err)
	}
	v.dismiss()
	return err
}

// signed makes an error that names no rank that of a rank.
func signed(err error, self levels.Rank) error {
	_, peer := errors.AsType[*PeerError](err)
	if _, join := errors.AsType[*JoinError](err); peer || join {
		return err
	}
	return &PeerError{self, err}
}

// reached joins what rank 0 and what this rank know of a failure.
func reached(ctx context.Context, verdict, err error) error {
	switch {
	case verdict == nil:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", verdict, context.Cause(ctx))
	}
	return verdict
}
