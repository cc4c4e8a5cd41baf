package executor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tierflow/tierflow/executor/ballot"
	"github.com/tierflow/tierflow/levels"
)

// begin starts listening.
func (c *control) begin() {
	c.job.OnControl(c.hearNote)
	c.job.OnLost(c.hearLost)
}

// hearNote takes a control message. It runs on the control plane's goroutine.
func (c *control) hearNote(from levels.Rank, kind uint8, payload []byte) {
	var n note
	if err := json.Unmarshal(payload, &n); err != nil {
		return // an authenticated peer of another version; join has compared versions
	}
	if len(n.To) > 0 && !n.To.has(int32(c.me)) {
		return
	}
	e := c.world.endpoints[c.me]
	switch kind {
	case dyingControl:
		c.hearDying(n.By, n.err())
	case abortControl:
		c.job.LetOut() // to whom this rank passes it on: the program may end at once
		c.hearDying(from, nil)
		c.hearFailure(from, n)
	case failControl:
		c.job.LetOut()
		c.hearDying(from, nil)
		c.world.endRank(n.By)
		c.world.failRank(n.By, n.err())
	case disownControl:
		c.world.disownCall(n.Comm, disowned{n.Seq, from, n.By, n.err()})
	case disownerControl:
		e.markBroken(n.Comm, nil, n.By, n.err())
	case byeControl:
		c.hearBye(from, n)
	case askControl:
		f := e.findCall(n.Comm, n.Seq, n.Digest)
		_ = c.send(from, tellControl, note{Question: n.Question, State: f.state, Digest: f.digest, Call: f.call}) // it asks no more if it is gone
	case pastControl:
		c.hearPast(from, n.Past)
	case inquireControl:
		if n.Call != nil {
			c.world.deliverInquiry(inquiry{from: from, to: c.me, comm: n.Comm, seq: n.Seq, digest: n.Digest, call: n.Call})
		}
	case whatControl:
		c.hearWhat(from, n)
	case stateControl:
		c.hearState(from, n)
	case ballotControl:
		e.hearBallot(from, ballot.Topic{Comm: n.Comm, Round: n.Seq}, n.Ballot)
	case linkControl:
		e.RenewLink(from, n.Seq, n.err())
	case verdictControl:
		c.world.reportVerdict(n.Verdict)
	case tellControl:
		c.mu.Lock()
		c.answer(n.Question, foundCall{n.State, n.Digest, n.Call})
		c.mu.Unlock()
	}
}

// hearFailure breaks a communicator, or all that a rank is in, because another rank says that it is broken.
func (c *control) hearFailure(from levels.Rank, n note) {
	by, err := n.By, n.err()
	if by == c.me && n.Mismatch == nil && n.Late == nil { // it has no other name for what only it has seen
		by, err = from, fmt.Errorf("it has given up on rank %d: %w", c.me, err)
	}
	if n.Why == whyRank {
		c.world.failRank(by, err)
		return
	}
	c.world.failHere(n.Comm, nil, by, err)
}

// hearBye takes a goodbye, after the reason if the communicator is broken.
func (c *control) hearBye(from levels.Rank, n note) {
	e := c.world.endpoints[c.me]
	e.mu.Lock()
	late := e.comms[n.Comm] == nil && e.ensureComm(0).away.has(int32(from)) // the communicator is forgotten
	e.mu.Unlock()
	if late {
		return
	}
	if n.Why != noWhy {
		c.hearFailure(from, n)
	}
	e.mu.Lock()
	defer e.releaseApart()
	if n.Onward {
		e.ensureComm(n.Comm).onward = append(e.ensureComm(n.Comm).onward, from)
	}
	if one := e.ensureComm(n.Comm); !n.Twice.has(int32(c.me)) || one.completeBye(from, byControl) {
		e.hearBye(one, departure{rank: from, seq: n.Seq, broken: n.Why != noWhy, onward: n.Onward})
	}
}

// hearLost breaks every communicator that a lost rank is in, also one that it had left
// before it died. Not all ranks may have heard that it left. Those who haven't break
// theirs, say so to nobody, and leave the others, who would wait for them.
func (c *control) hearLost(rank levels.Rank, err error) {
	if c.onLost != nil {
		c.onLost(rank, err)
	}
	c.noteLoss(rank, err)
	c.world.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		e.hearLast()
		e.releaseAlone()
	})
	c.world.failRank(rank, c.whyLost(rank, err))
	c.world.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.dead = append(e.dead, rank)
		for _, one := range e.comms {
			one.markAway(rank)
		}
	})
}

// hearLast takes what a rank sent before it died: a run that needs no more of it
// ends well. The lock is held.
func (e *Endpoint) hearLast() {
	for range lastPolls {
		if e.stopped || !e.link.Poll(e.ears()) {
			return
		}
	}
}

// lastPolls bounds hearLast, for links on which others never stop sending.
const lastPolls = 100

// acceptNote takes a connection with a note, unless the job ends.
func (c *control) acceptNote(from levels.Rank, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		conn.Close()
		return
	}
	c.takers.Go(func() { _ = c.takeNotes(from, conn) }) // a peer that says nonsense is not heard on
}

// takeNotes hears what a rank says over a connection for that, and closes it.
func (c *control) takeNotes(from levels.Rank, conn net.Conn) error {
	defer conn.Close()
	for {
		switch err := c.takeNote(from, conn); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// takeNote takes one note. The error is io.EOF if there are no more.
func (c *control) takeNote(from levels.Rank, conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(errandTime)); err != nil {
		return err
	}
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err == io.EOF {
		return err
	} else if err != nil {
		return fmt.Errorf("a note from rank %d: %w", from, err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxErrand {
		return fmt.Errorf("%w: a note of %d bytes from rank %d; allowed are 1 to %d", ErrProtocol, n, from, maxErrand)
	}
	note := make([]byte, n-1)
	if _, err := io.ReadFull(conn, note); err != nil {
		return errors.Join(ErrProtocol, err)
	}
	c.hearNote(from, head[4], note)
	return nil
}
