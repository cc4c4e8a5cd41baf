package executor

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels"
)

// control carries the words of engines in different processes beside the data: a
// communicator is broken, a rank has left one, a rank is in this call.
type control struct {
	world *World
	job   ControlPlane
	me    levels.Rank

	onLost func(levels.Rank, error) // also called for a lost rank

	ended atomic.Bool // the job is being left: nothing goes any more

	mu      sync.Mutex
	waiting map[uint32]*question         // by number
	states  map[uint32]chan flight.State // what ranks are asked to be in, by number
	asked   uint32
	pasts   map[levels.Rank]*pastCalls // of ranks that have left
	errands []errand                   // for ranks that the job's control plane doesn't reach
	dying   map[levels.Rank]error      // what ranks that are about to die have said
	losses  map[levels.Rank]error      // of ranks that the control plane has lost
	letters map[levels.Rank]*postbag   // for ranks that only a connection of their own reaches, see sendLetter
	takers  sync.WaitGroup
	carried chan struct{} // closed when there are none any more; nil: nobody carries any
}

// note is the payload of all of them.
type note struct {
	Comm     CommID
	Seq      uint32           `json:",omitempty"`
	Question uint32           `json:",omitempty"`
	Digest   uint32           `json:",omitempty"`
	By       levels.Rank      `json:",omitempty"`
	To       rankSet          `json:",omitempty"` // of the world, whom it concerns; empty: all
	Twice    rankSet          `json:",omitempty"` // who is told over a link too
	Why      why              `json:",omitempty"` // of a goodbye
	Text     string           `json:",omitempty"`
	Wraps    []string         `json:",omitempty"` // names of sentinels
	State    callState        `json:",omitempty"` // of an answer
	Call     *description     `json:",omitempty"`
	Past     *pastCalls       `json:",omitempty"`
	Mismatch *MismatchError   `json:",omitempty"`
	Late     *LateError       `json:",omitempty"`
	Is       *flight.State    `json:",omitempty"` // what the sender is in
	ForLate  bool             `json:",omitempty"` // of a question: a deadline has passed
	ForCall  bool             `json:",omitempty"` // of a question: in the collective Seq
	Straight bool             `json:",omitempty"` // of a question: the answer goes past the control tree too
	Verdict  *verdict.Finding `json:",omitempty"` // why the job stands still
	Onward   bool             `json:",omitempty"` // of a goodbye: see [departure]
	Ballot   []byte           `json:",omitempty"` // of an agreement of round Seq about Comm
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
	pastControl
	dyingControl
	whatControl
	stateControl
	verdictControl
	ballotControl
	linkControl
)

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

// newControl returns what speaks over a job's control plane; begin lets it listen.
func newControl(w *World, job ControlPlane, me levels.Rank) *control {
	return &control{
		world: w, job: job, me: me, waiting: map[uint32]*question{}, pasts: map[levels.Rank]*pastCalls{}, states: map[uint32]chan flight.State{},
	}
}

// bytes returns the note as it travels, cut to what the control plane carries.
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

// err returns the error that a note tells of.
func (n *note) err() error {
	if n.Mismatch != nil {
		return n.Mismatch
	}
	e := &toldError{text: n.Text}
	for _, s := range sentinels {
		if slices.Contains(n.Wraps, s.name) {
			e.wraps = append(e.wraps, s.err)
		}
	}
	if n.Late != nil {
		n.Late.Err = e
		return n.Late
	}
	return e
}

// failureNote returns the note that something failed because of a rank.
func failureNote(by levels.Rank, err error) note {
	n := note{By: by, Text: err.Error(), Wraps: sentinelNames(err)}
	if m, ok := errors.AsType[*MismatchError](err); ok {
		n.Mismatch = m
	}
	if l, ok := errors.AsType[*LateError](err); ok {
		n.Late, n.Text = l, l.Err.Error()
	}
	return n
}

// tellAbort tells the members of a communicator that it is broken.
func (c *control) tellAbort(comm *Comm, by levels.Rank, err error) {
	n := failureNote(by, err)
	n.Comm, n.To = comm.id, comm.members()
	c.broadcast(abortControl, n)
	c.job.LetOut()
}

// tellFailed tells all ranks that one has failed.
func (c *control) tellFailed(by levels.Rank, err error) {
	c.broadcast(failControl, failureNote(by, err))
	c.job.LetOut()
}

// tellDisowned tells the members of a communicator that this rank has failed in a call
// on it, because of a failure on the first one.
func (c *control) tellDisowned(comm *Comm, seq uint32, first levels.Rank, err error) {
	n := failureNote(first, err)
	n.Comm, n.Seq, n.To = comm.id, seq, comm.members()
	c.broadcast(disownControl, n)
	c.job.LetOut()
}

// tellDisowner tells a rank the number of a communicator that it has disowned.
func (c *control) tellDisowner(id CommID, by levels.Rank, err error) {
	n := failureNote(by, err)
	n.Comm = id
	c.retry(func() error { return c.send(by, disownerControl, n) })
}

// tellBye tells the ranks of a communicator that have not been told over a link; if it is
// broken, all of them, and why it is: this may come before what else would tell them.
func (c *control) tellBye(comm *Comm, told []levels.Rank, broken, onward bool) {
	var n note
	if f := comm.cause; f.err != nil {
		n = failureNote(f.peer, f.err)
		n.Why = whyComm
		if comm.e.hasLost(f.peer) {
			n.Why = whyRank
		}
	}
	n.Comm, n.Seq, n.To, n.Onward = comm.id, comm.seq, newRankSet(len(comm.local)), onward
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
			c.addErrand(errand{r, kind, b})
		}
	}
}

// send tells one rank.
func (c *control) send(to levels.Rank, kind uint8, n note) error {
	b := n.bytes()
	if slices.Contains(c.job.CutOff(), to) {
		c.addErrand(errand{to, kind, b})
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

// tellPast tells all ranks what this one, which leaves, has called.
func (c *control) tellPast(past *pastCalls) { c.broadcast(pastControl, note{Past: past}) }

// hearPast keeps the last calls of a rank that leaves, and answers the questions to it.
func (c *control) hearPast(from levels.Rank, past *pastCalls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pasts[from] = past
	for number, q := range c.waiting {
		if f := past.find(q.comm, q.seq, q.digest); q.rank == from && f.state == cameTo {
			c.answer(number, f)
		}
	}
}

// recallCall returns what a rank that has left ran as call seq on a communicator.
func (c *control) recallCall(rank levels.Rank, comm CommID, seq, digest uint32) foundCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pasts[rank].find(comm, seq, digest)
}

// runApart calls f on a goroutine of its own, which endNotes waits for. It reports whether it does.
func (c *control) runApart(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		return false
	}
	c.takers.Go(f)
	return true
}

// question is one that a rank is to answer.
type question struct {
	rank        levels.Rank
	comm        CommID
	seq, digest uint32
	answers     chan<- answer
}

// answer is what a rank says that it runs.
type answer struct {
	rank levels.Rank
	foundCall
}

// answer answers a question, once. c.mu is held.
func (c *control) answer(number uint32, f foundCall) {
	if q := c.waiting[number]; q != nil {
		q.answers <- answer{q.rank, f} // there is room for one from each
		delete(c.waiting, number)
	}
}

// askTime bounds the wait for an answer that only makes an error clearer.
const askTime = time.Second

// askCalls adds what ranks run as call seq on a communicator. The sender of a message with a digest may be about to leave:
// then it tells all what it has called.
func (c *control) askCalls(ranks []levels.Rank, comm CommID, seq uint32, sender levels.Rank, digest uint32, found map[levels.Rank]foundCall) {
	answers := make(chan answer, len(ranks))
	var numbers []uint32
	for _, r := range ranks {
		q := &question{rank: r, comm: comm, seq: seq, answers: answers}
		if r == sender {
			q.digest = digest
		}
		if f := c.recallCall(r, comm, seq, q.digest); f.state == cameTo {
			found[r] = f
			continue
		}
		c.mu.Lock()
		c.asked++
		number := c.asked
		c.waiting[number] = q
		c.mu.Unlock()
		if c.send(r, askControl, note{Comm: comm, Seq: seq, Question: number, Digest: q.digest}) == nil || r == sender {
			numbers = append(numbers, number)
			continue
		}
		c.mu.Lock()
		delete(c.waiting, number)
		c.mu.Unlock()
	}
	end := time.NewTimer(askTime)
	defer end.Stop()
	for range numbers {
		select {
		case a := <-answers:
			found[a.rank] = a.foundCall
		case <-end.C:
			c.mu.Lock()
			for _, n := range numbers {
				delete(c.waiting, n)
			}
			c.mu.Unlock()
			return
		}
	}
}

// inquire asks a rank of another process. Without room in the control plane nobody
// is asked; the stall report is left then.
func (c *control) inquire(q inquiry) {
	_ = c.send(q.to, inquireControl, note{Comm: q.comm, Seq: q.seq, Digest: q.digest, Call: q.call})
}

// errand is a note for a rank that the control tree doesn't reach, because a rank in
// between has left. It goes over a connection for such notes: purpose NotePurpose, then for each the
// length of what follows in 4 bytes, big-endian, the kind in one, and the note.
type errand struct {
	to   levels.Rank
	kind uint8
	note []byte
}

// NotePurpose is that of a connection which carries a note.
const NotePurpose uint8 = 3

// errandTime bounds carrying one, and hearing one.
const errandTime = 2 * time.Second

// maxErrand bounds the length of one, bytes.
const maxErrand = 1 << 20

// addErrand takes an errand to its rank, after those before it.
func (c *control) addErrand(e errand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errands = append(c.errands, e)
	if c.carried == nil {
		c.carried = make(chan struct{})
		go c.carryAll(c.carried) // deliverErrands waits for it
	}
}

// carryAll carries errands until there are none.
func (c *control) carryAll(carried chan struct{}) {
	for {
		c.mu.Lock()
		if len(c.errands) == 0 || c.ended.Load() {
			c.errands, c.carried = nil, nil
			c.mu.Unlock()
			close(carried)
			return
		}
		e := c.errands[0]
		c.errands = c.errands[1:]
		c.mu.Unlock()
		_ = c.deliverErrand(e) // a rank that can't be reached has left, or is lost
	}
}

func (c *control) deliverErrand(e errand) error {
	conn, err := c.deliverBy(c.job.Dial, e)
	if err == nil {
		conn.Close()
	}
	return err
}

// deliverBy is deliverErrand by a way to connect. The connection may carry more.
func (c *control) deliverBy(dial func(ctx context.Context, to levels.Rank, purpose uint8) (net.Conn, error), e errand) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), errandTime)
	defer cancel()
	conn, err := dial(ctx, e.to, NotePurpose)
	if err != nil {
		return nil, err
	}
	if err := writeErrand(conn, e); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// writeErrand writes a note to a connection.
func writeErrand(conn net.Conn, e errand) error {
	if err := conn.SetDeadline(time.Now().Add(errandTime)); err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(1+len(e.note)))
	_, err := conn.Write(append(append(b, e.kind), e.note...))
	return err
}

// deliverErrands waits for what is being carried.
func (c *control) deliverErrands(ctx context.Context) {
	c.mu.Lock()
	carried := c.carried
	c.mu.Unlock()
	if carried == nil {
		return
	}
	select {
	case <-carried:
	case <-ctx.Done():
		c.endNotes()
		<-carried
	}
}

// endNotes stops carrying and hearing notes.
func (c *control) endNotes() {
	c.mu.Lock()
	c.ended.Store(true)
	c.mu.Unlock()
	c.takers.Wait()
}
