package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	closeTime = 5 * time.Second
	// lingerTime is how long Close waits for neighbours after their goodbye to end their
	// connections too.
	lingerTime = time.Second
)

// Close says goodbye, keeps passing on the others' messages until all neighbours
// in the tree have said it too, and ends everything Join started; connections
// from Dial and Accept stay the caller's. It waits until ctx ends, without a
// deadline 5 s; neighbours without a goodbye by then are the error, as
// [PeerError]. If no rank was lost it ends with cfg.Leave. Don't call it from a
// handler. Later calls return the same.
func (j *Job) Close(ctx context.Context) error {
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		<-j.closed
		return j.closeErr
	}
	j.closing = true
	for _, x := range j.exchanges {
		x.end(ErrClosed)
	}
	j.mu.Unlock()
	defer close(j.closed)

	ctx, cancel := withDefault(ctx, closeTime)
	defer cancel()
	j.flood(nil, &frame{kind: frameGoodbye, from: j.Rank, to: everyone})
	overdue := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(farewellTime, func() { close(overdue) }) })()
	var waited []*edge // in vain
	for _, e := range j.edges {
		select {
		case <-e.departed:
		case <-overdue:
			if !e.isOver() {
				waited = append(waited, e)
			}
		}
	}
	j.stop(ctx)
	var errs []error
	for _, e := range waited {
		if e.silent() {
			errs = append(errs, &PeerError{e.peer, fmt.Errorf("has not said goodbye: %w", context.Cause(ctx))})
		}
	}
	if len(errs) == 0 && j.isWhole() {
		if err := j.tellLauncher(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		j.closeErr = fmt.Errorf("close: %w", reasons(errs))
	}
	return j.closeErr
}

// Abandon is Close of a rank that can't go on. It tells the others why, before its goodbye: they lose the rank named by err
// as [JoinError] or [PeerError], else this one. Without this they would take it for the first to leave.
func (j *Job) Abandon(ctx context.Context, err error) error {
	j.sayWhy(err)
	return j.Close(ctx)
}

// sayWhy tells the neighbours why this rank leaves, and they the others.
func (j *Job) sayWhy(err error) {
	why := asJoinError(signError(err, j.Rank))
	text := why.Reason
	if p, ok := errors.AsType[*PeerError](err); ok {
		text = strings.TrimPrefix(p.Err.Error(), ErrLost.Error()+": ")
	}
	for _, r := range why.Ranks {
		f := frame{kind: frameLost, from: r, to: everyone, payload: []byte(text)}
		switch {
		case !j.standing: // nobody reads or writes yet
			for _, e := range j.edges {
				deliver(e.conn, f.encode(), time.Now().Add(farewellTime))
			}
		case r == j.Rank:
			j.flood(nil, &f)
		default:
			j.lose(nil, r, f.loss())
		}
	}
}

// isWhole reports whether no rank was lost.
func (j *Job) isWhole() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !slices.ContainsFunc(j.absent, func(err error) bool { return err != nil && !errors.Is(err, ErrLeft) })
}

// tellLauncher tells the launcher of this rank's good end. Else some launchers take
// its end for a crash, so the caller's ctx doesn't cut it short.
func (j *Job) tellLauncher() error {
	if j.leave == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return j.leave(ctx)
}

// stop ends all goroutines and descriptors. Until ctx ends it lets queued frames out;
// then it waits a little for the neighbours to end their connections, so nothing
// sent is lost. All bytes here are read in any case, even if ctx had ended before a
// reader had its turn.
func (j *Job) stop(ctx context.Context) {
	j.mu.Lock()
	j.closing, j.stopped = true, true
	j.endLife()
	unclaimed := j.unclaimed
	j.unclaimed = nil
	j.mu.Unlock()
	if j.door != nil {
		j.door.close()
	}
	for _, a := range unclaimed {
		a.conn.Close()
	}
	for _, e := range j.allEdges() {
		e.out.close()
	}
	j.inbox.close()
	j.letWrite(ctx)
	end := time.Now().Add(lingerTime)
	if ctx.Err() != nil {
		end = time.Now().Add(farewellTime)
	}
	for _, e := range j.allEdges() {
		e.current().SetReadDeadline(end)
	}
	j.running.Wait()
	for _, e := range j.allEdges() {
		e.current().Close()
	}
}

// letWrite waits for the writers, a little longer than ctx.
func (j *Job) letWrite(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		end := time.Now().Add(farewellTime)
		for _, e := range j.allEdges() {
			e.current().SetWriteDeadline(end)
		}
	})()
	j.writing.Wait()
}
