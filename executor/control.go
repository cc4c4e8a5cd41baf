package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// control is what engines of different processes tell each other beside the data:
// that a communicator is broken, that a rank has left one, and who runs what.
type control struct {
	world *World
	job   ControlPlane
	me    levels.Rank

	onLost func(levels.Rank, error) // also called for a lost rank

	ended atomic.Bool // the job is being left: nothing goes any more

	mu      sync.Mutex
	waiting map[uint32]chan *description // questions by number
	asked   uint32
	errands []errand // for ranks that the job's control plane doesn't reach
	takers  sync.WaitGroup
	carried chan struct{} // closed when there are none any more; nil: nobody carries any
}

// The kinds of control messages.
const (
	abortControl uint8 = iota + 1
	byeControl
	askControl
	tellControl
	inquireControl
	failControl
	disownControl
	disownerControl
)

// note is the payload of all of them.
type note struct {
	Comm     CommID
	Seq      uint32         `json:",omitempty"`
	Question uint32         `json:",omitempty"`
	Digest   uint32         `json:",omitempty"`
	By       levels.Rank    `json:",omitempty"`
	To       rankSet        `json:",omitempty"` // of the world, whom it concerns; empty: all
	Twice    rankSet        `json:",omitempty"` // who is told over a link too
	Why      why            `json:",omitempty"` // of a goodbye
	Text     string         `json:",omitempty"`
	Wraps    []string       `json:",omitempty"` // names of sentinels
	Call     *description   `json:",omitempty"`
	Mismatch *MismatchError `json:",omitempty"`
}

// why is what is broken where a goodbye comes from.
type why uint8

const (
	noWhy   why = iota // nothing
	whyComm            // the communicator
	whyRank            // all that the rank is in which has failed
)

// maxTo bounds the words of a note's To, so that a note fits into a message. Of a larger
// world all ranks are told.
const maxTo = 1024

// maxNote keeps a message within what the control plane carries.
const maxNote = 32 << 10

func newControl(w *World, job ControlPlane, me levels.Rank) *control {
	return &control{
		world: w, job: job, me: me, waiting: map[uint32]chan *description{},
	}
}

// begin starts listening.
func (c *control) begin() {
	c.job.OnControl(c.hear)
	c.job.OnLost(c.lose)
}

func (n note) bytes() []byte {
	if len(n.Text) > maxNote {
		n.Text = n.Text[:maxNote]
	}
	if len(n.To) > maxTo {
		n.To, n.Twice = nil, nil
	}
	b, err := json.Marshal(n)
	if err != nil {
		panic(fmt.Sprintf("executor: a control note can't be encoded: %v", err))
	}
	return b
}

func (c *control) abort(comm *Comm, by levels.Rank, err error) {
	n := failureNote(by, err)
	n.Comm, n.To = comm.id, comm.members()
	c.broadcast(abortControl, n)
}

// failureNote says that something failed because of a rank.
func failureNote(by levels.Rank, err error) note {
	n := note{By: by, Text: err.Error(), Wraps: wraps(err)}
	if m, ok := errors.AsType[*MismatchError](err); ok {
		n.Mismatch = m
	}
	return n
}

func (c *control) failed(by levels.Rank, err error) {
	c.broadcast(failControl, failureNote(by, err))
}

func (c *control) disown(comm *Comm, seq uint32, err error) {
	n := failureNote(c.me, err)
	n.Comm, n.Seq, n.To = comm.id, seq, comm.members()
	c.broadcast(disownControl, n)
}

func (c *control) tellDisowner(id CommID, by levels.Rank, err error) {
	n := failureNote(by, err)
	n.Comm = id
	c.retry(func() error { return c.send(by, disownerControl, n) })
}

// bye tells the ranks of a communicator that have not been told over a link; if it is
// broken, all of them, and why it is: this may come before what else would tell them.
func (c *control) bye(comm *Comm, told []levels.Rank, broken bool) {
	var n note
	if f := comm.cause; f.err != nil {
		n = failureNote(f.peer, f.err)
		n.Why = whyComm
		if comm.e.hasLost(f.peer) {
			n.Why = whyRank
		}
	}
	n.Comm, n.Seq, n.To = comm.id, comm.seq, newRankSet(len(comm.local))
	for _, r := range comm.ranks {
		if is := slices.Contains(told, r); r != c.me && (broken || !is) {
			n.To.set(int32(r))
			if is {
				if n.Twice == nil {
					n.Twice = newRankSet(len(comm.local))
				}
				n.Twice.set(int32(r))
			}
		}
	}
	c.broadcast(byeControl, n)
}

// busyTime bounds how long a broadcast waits for room in the control plane.
const busyTime = time.Second

// broadcast tells all ranks; those that can't be reached learn of the loss by
// themselves. Queues of the control plane can be full: then it tries again.
func (c *control) broadcast(kind uint8, n note) {
	b := n.bytes()
	c.retry(func() error { return c.job.Broadcast(kind, b) })
	for _, r := range c.job.CutOff() {
		if len(n.To) == 0 || n.To.has(int32(r)) {
			c.carry(errand{r, kind, b})
		}
	}
}

// send tells one rank.
func (c *control) send(to levels.Rank, kind uint8, n note) error {
	b := n.bytes()
	if slices.Contains(c.job.CutOff(), to) {
		c.carry(errand{to, kind, b})
		return nil
	}
	return c.job.Send(to, kind, b)
}

// retry sends until it goes, for a while, unless the job ends.
func (c *control) retry(send func() error) {
	for end := time.Now().Add(busyTime); !c.ended.Load() && send() != nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// askTime bounds the wait for an answer that only makes an error clearer.
const askTime = 500 * time.Millisecond

// ask is what a rank runs as call seq on a communicator.
func (c *control) ask(rank levels.Rank, comm CommID, seq uint32) *description {
	answer := make(chan *description, 1)
	c.mu.Lock()
	c.asked++
	q := c.asked
	c.waiting[q] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, q)
		c.mu.Unlock()
	}()
	if c.send(rank, askControl, note{Comm: comm, Seq: seq, Question: q}) == nil {
		select {
		case d := <-answer:
			return d
		case <-time.After(askTime):
		}
	}
	return unknownCall
}

// inquire asks a rank of another process. Without room in the control plane nobody
// is asked; the stall report is left then.
func (c *control) inquire(q inquiry) {
	_ = c.send(q.to, inquireControl, note{Comm: q.comm, Seq: q.seq, Digest: q.digest, Call: q.call})
}

// hear takes a control message. It runs on the control plane's goroutine.
func (c *control) hear(from levels.Rank, kind uint8, payload []byte) {
	var n note
	if err := json.Unmarshal(payload, &n); err != nil {
		return // an authenticated peer of another version; join has compared versions
	}
	if len(n.To) > 0 && !n.To.has(int32(c.me)) {
		return
	}
	e := c.world.endpoints[c.me]
	switch kind {
	case abortControl:
		c.hearFailure(from, n)
	case failControl:
		c.world.failAll(n.By, n.err())
	case disownControl:
		c.world.disown(n.Comm, n.Seq, from, n.err())
	case disownerControl:
		e.mark(n.Comm, nil, n.By, n.err())
	case byeControl:
		c.hearBye(from, n)
	case askControl:
		_ = c.send(from, tellControl, note{Question: n.Question, Call: e.recorded(n.Comm, n.Seq)}) // it asks no more if it is gone
	case inquireControl:
		if n.Call != nil {
			c.world.inquire(inquiry{from: from, to: c.me, comm: n.Comm, seq: n.Seq, digest: n.Digest, call: n.Call})
		}
	case tellControl:
		c.mu.Lock()
		if answer := c.waiting[n.Question]; answer != nil && n.Call != nil {
			answer <- n.Call
			delete(c.waiting, n.Question)
		}
		c.mu.Unlock()
	}
}

// hearFailure breaks a communicator, or all that a rank is in, because another rank says that it is broken.
func (c *control) hearFailure(from levels.Rank, n note) {
	by, err := n.By, n.err()
	if by == c.me { // it has no other name for what only it has seen
		by, err = from, fmt.Errorf("it has given up on rank %d: %w", c.me, err)
	}
	if n.Why == whyRank {
		c.world.failAll(by, err)
		return
	}
	c.world.failHere(n.Comm, nil, by, err)
}

// hearBye takes a goodbye, after the reason if the communicator is broken.
func (c *control) hearBye(from levels.Rank, n note) {
	e := c.world.endpoints[c.me]
	e.mu.Lock()
	late := e.comms[n.Comm] == nil && e.comm(0).away.has(int32(from)) // the communicator is forgotten
	e.mu.Unlock()
	if late {
		return
	}
	if n.Why != noWhy {
		c.hearFailure(from, n)
	}
	e.mu.Lock()
	defer e.release()
	if one := e.comm(n.Comm); !n.Twice.has(int32(c.me)) || one.wholeBye(from, byControl) {
		e.hearBye(one, departure{rank: from, seq: n.Seq, broken: n.Why != noWhy})
	}
}

// lose breaks every communicator that a lost rank is in, also one that it had left
// before it died. Not all ranks may have heard that it left: those who haven't break
// theirs, say so to nobody, and leave the others, who would wait for them.
func (c *control) lose(rank levels.Rank, err error) {
	if c.onLost != nil {
		c.onLost(rank, err)
	}
	c.world.local(func(e *Endpoint) {
		e.mu.Lock()
		e.hearLast()
		e.release()
	})
	c.world.failAll(rank, err)
	c.world.local(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.dead = append(e.dead, rank)
		for _, one := range e.comms {
			one.miss(rank)
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

func (c *control) close() error {
	limit := c.world.config.CloseTimeout
	cause := fmt.Errorf("waited for %v: %w", limit, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, cause)
	defer cancel()
	if c.world.stop != nil {
		c.world.stop(ctx)
	}
	c.deliverErrands(ctx)
	c.end()
	return c.job.Close(ctx)
}
