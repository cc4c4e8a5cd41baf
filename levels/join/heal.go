package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// When a rank of the tree is lost, those below it look for another one above them. That one
// follows from the topology and the gone ranks alone, so nobody has to be asked. The edges they
// make carry news of losses and goodbyes, and show when their ends die. Messages don't go along
// them: a rank cut off is reached with [Job.Dial], and would get them twice.

const (
	healTime = 2 * time.Second // for one attempt to reach a rank above
	// comeTime is the grace for an orphan to reconnect to the rank above it, and then the interval of that
	// rank's probes.
	comeTime = 200 * time.Millisecond
	lookTime = 500 * time.Millisecond // for one look
)

// needHealing lets the tree be healed, now or again. j.mu is held.
func (j *Job) needHealing() {
	if !j.settled || j.closing || len(j.losses) == 0 {
		return
	}
	if j.healing == nil {
		j.healing = make(chan struct{}, 1)
		j.running.Go(j.heal)
	}
	select {
	case j.healing <- struct{}{}:
	default:
	}
}

// heal looks for a rank above this one, and for those below it, after each loss, until the
// job is left.
func (j *Job) heal() {
	since := map[levels.Rank]time.Time{} // when a rank was first missed
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-j.life.Done():
			return
		case <-j.healing:
		case <-pause.C:
		}
		if j.healOnce(since) {
			pause.Reset(comeTime)
		}
	}
}

// healOnce makes a missing edge upwards, and looks for missing ranks below. It reports whether some are
// still missing.
func (j *Job) healOnce(since map[levels.Rank]time.Time) (missing bool) {
	j.mu.Lock()
	gone := slices.Clone(j.absent)
	j.mu.Unlock()
	up := j.tree.parentWithout(gone, j.Rank)
	if up >= 0 && !j.hasEdge(up) {
		missing = true
		if j.attach(up) == nil {
			delete(since, up)
		} else {
			j.look(up, since)
		}
	}
	now := time.Now()
	for place := range j.tree.places {
		leader := j.tree.leader(place, gone)
		switch {
		case leader < 0:
			continue
		case leader == j.Rank: // the others of its node are below it
		case j.tree.parentWithout(gone, leader) != j.Rank || j.hasEdge(leader):
			continue
		}
		// If the leader is lost the next one of its node should come: all are missed from now on.
		for _, r := range j.tree.places[place] {
			if r == j.Rank || gone[r] != nil || leader == j.Rank && j.hasEdge(r) {
				continue
			}
			missing = true
			first, known := since[r]
			if !known {
				since[r] = now
			} else if now.Sub(first) >= comeTime {
				j.look(r, since)
			}
		}
	}
	return missing
}

// hasEdge reports whether a connection of the tree, or beside it, leads to a rank.
func (j *Job) hasEdge(r levels.Rank) bool {
	return slices.ContainsFunc(j.allEdges(), func(e *edge) bool { return e.peer == r && e.stands.Load() && !e.isOver() })
}

// allEdges returns the edges of the tree and those added by healing.
func (j *Job) allEdges() []*edge {
	if more := j.healed.Load(); more != nil {
		return *more
	}
	return j.edges
}

// attach makes an edge to a rank above.
func (j *Job) attach(up levels.Rank) error {
	ctx, cancel := context.WithTimeout(j.life, healTime)
	defer cancel()
	c, err := j.dial(ctx, up, purposeTree, j.sameNode(up))
	if err != nil {
		return err
	}
	var f frame
	err = within(ctx, c, func() (err error) {
		f, err = readFrame(c, j.Size, 0)
		return err
	})
	switch {
	case err != nil:
		return err
	case f.kind == frameGoodbye && f.from == up:
		c.Close()
		j.noteLeft(nil, &f)
		return nil
	case f.kind != frameHealed:
		c.Close()
		return fmt.Errorf("frame of kind %d in place of a welcome", f.kind)
	}
	e := newEdge(up, c)
	e.dialled = true
	e.stands.Store(true)
	return j.adopt(e)
}

// adopt takes an edge beside the tree, and tells all known losses and goodbyes. On
// an error it is closed.
func (j *Job) adopt(e *edge) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := watchSilence(e.conn)
	if j.closing || !j.settled {
		err = ErrClosed
	}
	if err != nil {
		e.conn.Close()
		return err
	}
	e.out.force(frame{kind: frameHealed, from: j.Rank, to: everyone}.encode())
	for _, r := range j.losses {
		e.out.force(lostFrame(r, j.absent[r]).encode())
	}
	for r, err := range j.absent {
		if errors.Is(err, ErrLeft) {
			e.out.force(frame{kind: frameGoodbye, from: levels.Rank(r), to: everyone}.encode())
		}
	}
	all := append(slices.Clone(j.allEdges()), e)
	j.healed.Store(&all)
	j.serve(e)
	return nil
}

// look finds out whether a missing rank still takes connections, and counts it as lost if
// it doesn't, and its goodbye doesn't come within comeTime: it may have left, and the news be on its way. A stopped process
// does, by its kernel. A host may be silent for as long as on an edge.
func (j *Job) look(r levels.Rank, since map[levels.Rank]time.Time) {
	if _, known := since[r]; !known {
		since[r] = time.Now()
	}
	err := j.knock(j.life, r)
	switch {
	case err == nil || j.life.Err() != nil:
		delete(since, r)
	case isRefused(err) && time.Since(since[r]) >= comeTime:
		j.lose(nil, r, fmt.Errorf("%w: it takes no connections any more: %w", ErrLost, err))
	case time.Since(since[r]) > silenceTime:
		j.lose(nil, r, fmt.Errorf("%w: it can't be reached: %w", ErrLost, err))
	}
}

// knock connects to a rank without a word. Where ports are of a range, another process may soon have that of a dead rank: then it
// asks who listens.
func (j *Job) knock(ctx context.Context, r levels.Rank) error {
	if j.hasEnded(r) {
		return reasons{errProcessEnded}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	targets, _ := j.targets(r, j.sameNode(r))
	results := make(chan error)
	for _, t := range targets {
		go func() { // waited for below
			c, err := t.connect(ctx)
			switch {
			case err != nil:
			case j.sharesPorts && t.network == "tcp":
				err = j.checkListener(ctx, t, c, r)
			default:
				c.Close()
			}
			results <- err
		}()
	}
	var errs reasons
	open := false
	for range targets {
		err := <-results
		if err == nil {
			open = true
			cancel()
			continue
		}
		errs = append(errs, err)
	}
	if open || len(targets) == 0 {
		return nil
	}
	return errs
}

// checkListener returns an error if another process than a rank's takes the connection. One that says nothing may be stopped.
func (j *Job) checkListener(ctx context.Context, t target, c net.Conn, r levels.Rank) error {
	proven, err := t.greetOn(ctx, c, credentials{j.key, j.guard}, newGreeting(purposeKnock, j.Rank, r))
	switch {
	case err == nil:
		proven.Close()
	case errors.Is(err, errOtherRank), errors.Is(err, ErrSecret):
		return err
	}
	return nil
}

// isRefused reports whether the host of a rank refuses connections at each address, or its process has ended, or others have its port.
func isRefused(err error) bool {
	each, ok := errors.AsType[reasons](err)
	return ok && !slices.ContainsFunc(each, func(err error) bool {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errProcessEnded) &&
			!errors.Is(err, errOtherRank) && !errors.Is(err, ErrSecret)
	})
}
