package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// monitor is the rendezvous monitor. It keeps the rendezvous connections open while the tree grows. A rank that dies
// or fails meanwhile lacks some neighbours to notice it yet: rank 0
// does, and tells all.
type monitor interface {
	// watch begins; fail is called if the join has failed elsewhere.
	watch(fail context.CancelCauseFunc)
	// end tells the others the outcome of the join here, and returns the cause of a failure: its
	// root, as far as rank 0 knows it, else err. ctx is the caller's.
	end(ctx context.Context, err error) error
}

const (
	// verdictTime is how long a rank waits after a failure for rank 0 to say why: it
	// may have lost a rank that only left because another one died.
	verdictTime = 4 * hearTime
	// reasonTime bounds sending the news.
	reasonTime = time.Second
)

// noMonitor has nobody to watch.
type noMonitor struct{}

func (noMonitor) watch(context.CancelCauseFunc)          {}
func (noMonitor) end(_ context.Context, err error) error { return err }

// guestMonitor is the monitor of all ranks but 0.
type guestMonitor struct {
	conn    net.Conn
	self    levels.Rank
	over    chan struct{} // closed when rank 0 has said something, or is gone
	verdict error         // set before; nil: the join stands
}

func (g *guestMonitor) watch(fail context.CancelCauseFunc) {
	g.over = make(chan struct{})
	go func() { // end waits for it
		defer close(g.over)
		if g.verdict = g.hear(); g.verdict != nil {
			fail(g.verdict)
		}
	}()
}

// hear waits for rank 0's word.
func (g *guestMonitor) hear() error {
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

func (g *guestMonitor) end(ctx context.Context, err error) error {
	if err == nil {
		deliver(g.conn, frame{kind: frameGoodbye, from: g.self}.encode(), time.Now().Add(reasonTime))
		g.conn.Close()
		<-g.over
		return nil
	}
	deliver(g.conn, failureFrame(frameFailure, signError(err, g.self)), time.Now().Add(reasonTime))
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
	return joinVerdict(ctx, verdict, err)
}

// hostMonitor is rank 0's. A failing rank says why before it leaves, so the end of a connection without a word is a death. If
// ranks blame each other, the chain of their words leads to the first.
type hostMonitor struct {
	*host
	own     chan *JoinError // rank 0's own failure
	stop    chan struct{}
	stopped chan struct{}              // closed when watch has ended
	over    chan struct{}              // closed with the verdict
	verdict *JoinError                 // why the join failed; set before
	claimOf map[levels.Rank]*JoinError // why ranks failed, in their words
	ended   map[levels.Rank]*JoinError // nil for those that joined before
	claims  []*JoinError               // of claimOf, the oldest first
}

// hearTime bounds the time from a rank's blame of another one until rank 0 hears of the other,
// by its word or its end.
const hearTime = 500 * time.Millisecond

func (v *hostMonitor) watch(fail context.CancelCauseFunc) {
	v.own, v.stop, v.stopped, v.over = make(chan *JoinError), make(chan struct{}), make(chan struct{}), make(chan struct{})
	v.claimOf, v.ended = map[levels.Rank]*JoinError{}, map[levels.Rank]*JoinError{}
	go func() { // end waits for it
		defer close(v.stopped)
		hearTimer := time.NewTimer(hearTime)
		defer hearTimer.Stop()
		for {
			patient, before := true, len(v.claims)
			select {
			case <-v.stop:
				return
			case e := <-v.events:
				v.hear(e)
			case why := <-v.own:
				v.claim(0, why)
			case <-hearTimer.C:
				patient = false
			}
			if before == 0 && len(v.claims) > 0 {
				hearTimer.Reset(hearTime)
			}
			if v.verdict != nil {
				continue
			}
			if v.verdict = v.judge(patient); v.verdict != nil {
				v.toAll(failureFrame(frameFailure, v.verdict), time.Now().Add(reasonTime))
				close(v.over)
				fail(v.verdict)
			}
		}
	}()
}

// hear takes in an event on a connection.
func (v *hostMonitor) hear(e event) {
	switch {
	case e.peer != nil: // it came too late; the next join may be its
		e.conn.Close()
	case e.why != nil:
		v.claim(e.from, e.why)
	case e.gone != nil && v.conns[e.gone.Rank] == e.conn:
		v.conns[e.gone.Rank], v.ended[e.gone.Rank] = nil, nil
		if !e.left {
			v.ended[e.gone.Rank] = &JoinError{
				Ranks:  []levels.Rank{e.gone.Rank},
				Reason: fmt.Sprintf("rank %d (%s) was lost while the ranks connected", e.gone.Rank, e.gone.where()),
			}
		}
	}
}

// claim takes in why a rank failed.
func (v *hostMonitor) claim(from levels.Rank, why *JoinError) {
	if v.claimOf[from] == nil {
		v.claimOf[from] = why
		v.claims = append(v.claims, why)
	}
}

// judge returns why the join fails, nil if it doesn't, or if the blamed rank may still say why.
func (v *hostMonitor) judge(patient bool) *JoinError {
	for r, lost := range v.ended {
		if lost != nil && v.claimOf[r] == nil {
			return lost
		}
	}
	for _, why := range v.claims {
		if root, sure := v.trace(why); sure || !patient {
			return root
		}
	}
	return nil
}

// trace follows a rank's word to the rank it blames, then to the word of this one, and so on. It is sure unless the last one lives and has said
// nothing.
func (v *hostMonitor) trace(why *JoinError) (root *JoinError, sure bool) {
	for range v.size {
		if len(why.Ranks) != 1 {
			return why, true
		}
		next, left := v.claimOf[why.Ranks[0]], false
		if next == nil {
			_, left = v.ended[why.Ranks[0]]
			return why, left
		}
		if next == why || slices.Equal(next.Ranks, why.Ranks) {
			return next, true
		}
		why = next
	}
	return why, true
}

func (v *hostMonitor) end(ctx context.Context, err error) error {
	own := new(JoinError)
	if err != nil {
		*own = *asJoinError(signError(err, 0)) // err may wrap the verdict itself
		select {
		case v.own <- own:
			<-v.over
		case <-v.over:
		}
	}
	close(v.stop)
	<-v.stopped
	switch {
	case err == nil:
		v.toAll(frame{kind: frameGoodbye, to: everyone}.encode(), time.Now().Add(reasonTime))
	case v.verdict != own:
		err = joinVerdict(ctx, v.verdict, err)
	}
	v.dismiss()
	return err
}

// signError makes an error without a rank the error of this one.
func signError(err error, self levels.Rank) error {
	_, peer := errors.AsType[*PeerError](err)
	if join, ok := errors.AsType[*JoinError](err); peer || ok && len(join.Ranks) > 0 {
		return err
	}
	return &PeerError{self, err}
}

// joinVerdict joins rank 0's and this rank's knowledge of a failure.
func joinVerdict(ctx context.Context, verdict, err error) error {
	switch {
	case verdict == nil:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", verdict, context.Cause(ctx))
	}
	return verdict
}
