package join

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// When a rank of the tree is lost, those below it look for another one above them. That one
// follows from the topology and the gone ranks alone, so nobody has to be asked. The edges they
// make carry news of losses and goodbyes, and show when their ends die. Messages don't go along
// them: whoever is cut off is reached with [Job.Dial], and would get them twice.

const (
	healTime = 2 * time.Second // for one attempt to reach a rank above
	// comeTime is how long a rank may take to find the one above it before that one looks
	// whether it is still there, and between two looks.
	comeTime = 200 * time.Millisecond
	lookTime = 500 * time.Millisecond // for one look
)

// seats are the nodes in the order of their places in the tree, see [tree].
type seats struct {
	node  []int           // by rank: its node's place
	ranks [][]levels.Rank // by place, ascending
}

func newSeats(t *levels.Topology) *seats {
	s := &seats{node: make([]int, t.Size())}
	places := map[int32]int{} // by node of the topology
	for r := range levels.Rank(t.Size()) {
		place, known := places[t.Node(r)]
		if !known {
			place = len(s.ranks)
			places[t.Node(r)] = place
			s.ranks = append(s.ranks, nil)
		}
		s.node[r] = place
		s.ranks[place] = append(s.ranks[place], r)
	}
	return s
}

// leader returns the lowest rank of a node not gone, -1 if there is none.
func (s *seats) leader(place int, gone []error) levels.Rank {
	for _, r := range s.ranks[place] {
		if gone[r] == nil {
			return r
		}
	}
	return -1
}

// parent returns the rank above one that isn't gone, -1 above the root. It is the leader of its
// node. Above a leader it is that of the nearest node towards the root; nodes without a living
// rank don't count. Where all of them are empty it is that of the first node that isn't.
// Without losses it is the tree's parent.
func (s *seats) parent(r levels.Rank, gone []error) levels.Rank {
	place := s.node[r]
	if leader := s.leader(place, gone); leader != r {
		return leader
	}
	for up := place; up > 0; {
		up = (up - 1) / fanOut
		if leader := s.leader(up, gone); leader >= 0 {
			return leader
		}
	}
	for first := range place {
		if leader := s.leader(first, gone); leader >= 0 {
			return leader
		}
	}
	return -1
}

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
	s := newSeats(j.Topology)
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
		if j.healOnce(s, since) {
			pause.Reset(comeTime)
		}
	}
}

// healOnce makes the edge upwards that is missing, and looks for the ranks that should have come. It reports whether some are
// still missing.
func (j *Job) healOnce(s *seats, since map[levels.Rank]time.Time) (missing bool) {
	j.mu.Lock()
	gone := slices.Clone(j.absent)
	j.mu.Unlock()
	up := s.parent(j.Rank, gone)
	if up >= 0 && !j.hasEdge(up) {
		missing = true
		if j.attach(up) == nil {
			delete(since, up)
		} else {
			j.look(up, since)
		}
	}
	now := time.Now()
	for place := range s.ranks {
		leader := s.leader(place, gone)
		switch {
		case leader < 0:
			continue
		case leader == j.Rank: // the others of its node are below it
		case s.parent(leader, gone) != j.Rank || j.hasEdge(leader):
			continue
		}
		// If the leader is lost the next one of its node should come: all are missed from now on.
		for _, r := range s.ranks[place] {
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
	return slices.ContainsFunc(j.allEdges(), func(e *edge) bool { return e.peer == r && e.stands.Load() && !e.ended() })
}

// allEdges returns those of the tree and those that have healed it.
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

// adopt takes an edge beside the tree, and tells all that is known of losses and goodbyes. On
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
	e.out.force((&frame{kind: frameHealed, from: j.Rank, to: everyone}).encode())
	for _, r := range j.losses {
		e.out.force(lostFrame(r, j.absent[r]).encode())
	}
	for r, err := range j.absent {
		if errors.Is(err, ErrLeft) {
			e.out.force((&frame{kind: frameGoodbye, from: levels.Rank(r), to: everyone}).encode())
		}
	}
	all := append(slices.Clone(j.allEdges()), e)
	j.healed.Store(&all)
	j.writing.Go(e.write)
	j.running.Go(func() { j.listenTo(e) })
	return nil
}

// look finds out whether a rank that is missed still takes connections, and counts it as lost if
// it doesn't. A stopped process does, by its kernel. A host may be silent for as long as on
// an edge.
func (j *Job) look(r levels.Rank, since map[levels.Rank]time.Time) {
	if _, known := since[r]; !known {
		since[r] = time.Now()
	}
	err := j.knock(j.life, r)
	switch {
	case err == nil || j.life.Err() != nil:
		delete(since, r)
	case isRefused(err):
		j.lose(nil, r, fmt.Errorf("%w: it takes no connections any more: %w", ErrLost, err))
	case time.Since(since[r]) > silence:
		j.lose(nil, r, fmt.Errorf("%w: it can't be reached: %w", ErrLost, err))
	}
}

// knock connects to a rank without a word.
func (j *Job) knock(ctx context.Context, r levels.Rank) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	it := j.Peers[r]
	targets := []target{{network: "unix", address: it.Unix}}
	if !j.sameNode(r) {
		targets, _ = candidates(j.own, j.filtered, j.Peers[j.Rank].Host == it.Host, it.Addrs)
	}
	results := make(chan error)
	for _, t := range targets {
		go func() { // waited for below
			c, err := t.connect(ctx)
			if err == nil {
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

// isRefused reports whether the host of a rank answers, at each address, that nobody listens.
func isRefused(err error) bool {
	each, ok := errors.AsType[reasons](err)
	return ok && !slices.ContainsFunc(each, func(err error) bool {
		return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist)
	})
}
