package executor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

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
	if about := kind == failControl && n.By != from || kind == disownControl; about && e.isOut(from) {
		return // two sides that go on without each other don't believe each other
	}
	switch kind {
	case dyingControl:
		c.keepLastWords(n.By, n.err())
	case abortControl:
		c.job.LetOut() // to the ranks below this one in the tree: the program may end at once
		c.keepLastWords(from, nil)
		c.hearFailure(from, n)
	case failControl:
		c.job.LetOut()
		c.keepLastWords(from, nil)
		c.world.endRank(n.By)
		c.world.failRank(n.By, n.err())
	case disownControl:
		c.world.disownCall(n.Comm, disowned{n.Seq, from, n.By, n.err()})
	case disownerControl:
		e.markBroken(n.Comm, nil, n.By, n.err())
	case byeControl:
		c.hearBye(from, n)
	case callQuestionControl:
		f := e.findCall(n.Comm, n.Seq, n.Digest)
		_ = c.send(from, callAnswerControl, note{Question: n.Question, State: f.state, Digest: f.digest, Call: f.call}) // a rank out of reach asks no more
	case pastControl:
		c.takePastCalls(from, n.Past)
	case inquireControl:
		if n.Call != nil {
			c.world.deliverInquiry(inquiry{from: from, to: c.me, comm: n.Comm, seq: n.Seq, digest: n.Digest, call: n.Call})
		}
	case stateQuestionControl:
		c.answerState(from, n)
	case stateAnswerControl:
		c.takeState(from, n)
	case ballotControl:
		e.hearBallot(from, n)
	case linkControl:
		e.RenewLink(from, n.Seq, n.err())
	case verdictControl:
		c.world.reportVerdict(n.Verdict)
	case callAnswerControl:
		c.mu.Lock()
		c.answer(n.Question, foundCall{n.State, n.Digest, n.Call})
		c.mu.Unlock()
	}
}

// isOut reports whether a rank of the world has died, or goes on without this one.
func (e *Endpoint) isOut(rank levels.Rank) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.dead, rank)
}

// hearFailure breaks a communicator, or all communicators of a rank, on the word of another rank.
func (c *control) hearFailure(from levels.Rank, n note) {
	if c.world.endpoints[c.me].isOut(from) {
		return
	}
	by, err := n.By, n.err()
	if by == c.me && n.Mismatch == nil && n.Late == nil { // the sender blames this rank for an error only the sender has seen
		by, err = from, fmt.Errorf("it has given up on rank %d: %w", c.me, err)
	}
	if n.Why == rankBroken {
		c.world.failRank(by, err)
		return
	}
	c.world.failHere(n.Comm, nil, by, err)
}

// hearBye takes a goodbye, after the reason if the communicator is broken.
func (c *control) hearBye(from levels.Rank, n note) {
	e := c.world.endpoints[c.me]
	e.mu.Lock()
	late := e.comms[n.Comm] == nil && e.ensureComm(0).departed.has(int32(from)) // the communicator is forgotten
	e.mu.Unlock()
	if late {
		return
	}
	if n.Why != nothingBroken {
		c.hearFailure(from, n)
	}
	e.mu.Lock()
	defer e.releaseApart()
	one := e.ensureComm(n.Comm)
	if n.Onward {
		one.onwardRanks = append(one.onwardRanks, from)
	}
	if !n.Twice.has(int32(c.me)) || one.completeBye(from, byControl) {
		e.comms.hearBye(one, departure{rank: from, seq: n.Seq, broken: n.Why != nothingBroken, onward: n.Onward})
	}
}

// hearLost breaks all communicators of a lost rank, also one it had left before it died. Some ranks
// may not have heard of its leaving: they break their ends without a word, and the others would
// wait for them.
func (c *control) hearLost(rank levels.Rank, err error) {
	if c.onLost != nil {
		c.onLost(rank, err)
	}
	c.noteLoss(rank, err)
	c.world.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		e.drainLink()
		e.releaseAlone()
	})
	c.world.failRank(rank, c.whyLost(rank, err))
	c.world.eachLocked(func(e *Endpoint) {
		e.dead = append(e.dead, rank)
		for _, one := range e.comms {
			one.markAway(rank)
		}
	})
}

// drainLink takes the last messages of a rank before it died: a run in need of no more from it ends
// well. The lock is held.
func (e *Endpoint) drainLink() {
	for range lastPolls {
		if e.stopped || !e.link.Poll(e.sink()) {
			return
		}
	}
}

// lastPolls bounds drainLink, for links with others sending all the time.
const lastPolls = 100

// acceptNote takes a connection for notes, unless the job ends.
func (c *control) acceptNote(from levels.Rank, conn net.Conn) {
	if !c.runApart(func() { c.takeNotes(from, conn) }) {
		conn.Close()
	}
}

// takeNotes reads a rank's notes from a connection until its end, or nonsense, and closes it.
func (c *control) takeNotes(from levels.Rank, conn net.Conn) {
	defer conn.Close()
	for c.takeNote(from, conn) == nil {
	}
}

// takeNote takes one note. The error is io.EOF if there are no more.
func (c *control) takeNote(from levels.Rank, conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(directTime)); err != nil {
		return err
	}
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err == io.EOF {
		return err
	} else if err != nil {
		return fmt.Errorf("a note from rank %d: %w", from, err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxDirect {
		return fmt.Errorf("%w: a note of %d bytes from rank %d; allowed are 1 to %d", ErrProtocol, n, from, maxDirect)
	}
	note := make([]byte, n-1)
	if _, err := io.ReadFull(conn, note); err != nil {
		return errors.Join(ErrProtocol, err)
	}
	c.hearNote(from, head[4], note)
	return nil
}
