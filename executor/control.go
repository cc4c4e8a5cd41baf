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

// control carries messages between engines of different processes beside the data: a communicator
// is broken, a rank has left one, a rank is in this call.
type control struct {
	world *World
	job   ControlPlane
	me    levels.Rank

	onLost func(levels.Rank, error) // also called for a lost rank

	ended atomic.Bool // the job is being left: nothing is sent any more

	mu           sync.Mutex
	questions    map[uint32]*question         // by number
	states       map[uint32]chan flight.State // for the answers with ranks' states, by number of the question
	lastQuestion uint32                       // number of the last question
	pastCalls    map[levels.Rank]*pastCalls   // of departed ranks
	direct       map[levels.Rank][]directNote // by rank out of reach of the job's control plane; present: a goroutine sends them
	lastWords    map[levels.Rank]error        // of ranks about to die
	losses       map[levels.Rank]error        // of ranks lost by the control plane
	ballots      map[levels.Rank]*ballotQueue // for ranks with only a connection of their own, see sendDirect
	background   sync.WaitGroup
	directDone   chan struct{} // closed after the last direct note; nil: none is being sent
	carriers     chan struct{} // has one for each direct note on its way, at most mostCarriers
}

// note is the payload of all control messages.
type note struct {
	Comm     CommID
	Seq      uint32           `json:",omitempty"`
	Question uint32           `json:",omitempty"`
	Digest   uint32           `json:",omitempty"`
	By       levels.Rank      `json:",omitempty"`
	To       rankSet          `json:",omitempty"` // of the world, its addressees; empty: all
	Twice    rankSet          `json:",omitempty"` // of these, the ranks told over a link too
	Why      brokenPart       `json:",omitempty"` // of a goodbye
	Text     string           `json:",omitempty"`
	Wraps    []string         `json:",omitempty"` // names of sentinels
	State    callState        `json:",omitempty"` // of an answer
	Call     *description     `json:",omitempty"`
	Past     *pastCalls       `json:",omitempty"`
	Mismatch *MismatchError   `json:",omitempty"`
	Late     *LateError       `json:",omitempty"`
	Is       *flight.State    `json:",omitempty"` // the sender's state
	ForLate  bool             `json:",omitempty"` // of a question: a deadline has passed
	ForCall  bool             `json:",omitempty"` // of a question: in the collective Seq
	Straight bool             `json:",omitempty"` // of a question or ballot: the answer goes past the control tree too
	Verdict  *verdict.Finding `json:",omitempty"` // why the job stands still
	Onward   bool             `json:",omitempty"` // of a goodbye: see [departure]
	Ballot   []byte           `json:",omitempty"` // of an agreement of round Seq about Comm
}

// The kinds of control messages.
const (
	abortControl uint8 = iota + 1
	byeControl
	callQuestionControl
	callAnswerControl
	inquireControl
	failControl
	disownControl
	disownerControl
	pastControl
	dyingControl
	stateQuestionControl
	stateAnswerControl
	verdictControl
	ballotControl
	linkControl
)

// brokenPart says what is broken at the sender of a goodbye.
type brokenPart uint8

const (
	nothingBroken brokenPart = iota
	commBroken               // the communicator
	rankBroken               // all communicators of the failed rank
)

// maxTo bounds the words of a note's To, so a note fits into a message. In a larger world all ranks
// are told.
const maxTo = 1024

// maxNote keeps a message within the control plane's limit, bytes.
const maxNote = 32 << 10

// newControl returns an engine's side of a job's control plane; begin lets it listen.
func newControl(w *World, job ControlPlane, me levels.Rank) *control {
	return &control{
		world: w, job: job, me: me,
		questions: map[uint32]*question{}, states: map[uint32]chan flight.State{}, pastCalls: map[levels.Rank]*pastCalls{},
		lastWords: map[levels.Rank]error{}, losses: map[levels.Rank]error{}, ballots: map[levels.Rank]*ballotQueue{},
		direct: map[levels.Rank][]directNote{}, carriers: make(chan struct{}, mostCarriers),
	}
}

// bytes returns the note's encoding, cut to the control plane's limit.
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

// err returns the error in a note.
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

// failureNote returns the note of a failure because of a rank.
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

// tellAbort tells the members of a communicator of its break.
func (c *control) tellAbort(comm *Comm, by levels.Rank, err error) {
	n := failureNote(by, err)
	n.Comm, n.To = comm.id, comm.members()
	c.broadcast(abortControl, n)
	c.job.LetOut()
}

// tellFailed tells all ranks of a rank's failure.
func (c *control) tellFailed(by levels.Rank, err error) {
	c.broadcast(failControl, failureNote(by, err))
	c.job.LetOut()
}

// tellDisowned tells the members of a communicator of this rank's failure in a call on it, because
// of a failure on the first rank.
func (c *control) tellDisowned(comm *Comm, seq uint32, first levels.Rank, err error) {
	n := failureNote(first, err)
	n.Comm, n.Seq, n.To = comm.id, seq, comm.members()
	c.broadcast(disownControl, n)
	c.job.LetOut()
}

// tellDisowner tells a rank the number of a communicator it has disowned.
func (c *control) tellDisowner(id CommID, by levels.Rank, err error) {
	n := failureNote(by, err)
	n.Comm = id
	c.retry(func() error { return c.send(by, disownerControl, n) })
}

// tellBye says goodbye to the ranks of a communicator without a goodbye over a link. If it is
// broken, all its ranks are told, with the reason: the goodbye may come before other news of the
// break.
func (c *control) tellBye(comm *Comm, told []levels.Rank, broken, onward bool) {
	var n note
	if f := comm.cause; f.err != nil {
		n = failureNote(f.peer, f.err)
		n.Why = commBroken
		if comm.e.hasLost(f.peer) {
			n.Why = rankBroken
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

// broadcast tells all ranks; those out of reach learn of the loss by themselves. It tries again
// while the control plane's queues are full.
func (c *control) broadcast(kind uint8, n note) {
	b := n.bytes()
	c.retry(func() error { return c.job.Broadcast(kind, b) })
	for _, r := range c.job.CutOff() {
		if len(n.To) == 0 || n.To.has(int32(r)) {
			c.queueDirect(directNote{r, kind, b})
		}
	}
}

// send tells one rank.
func (c *control) send(to levels.Rank, kind uint8, n note) error {
	b := n.bytes()
	if slices.Contains(c.job.CutOff(), to) {
		c.queueDirect(directNote{to, kind, b})
		return nil
	}
	return c.job.Send(to, kind, b)
}

// retry sends until it succeeds, for busyTime at most, unless the job ends.
func (c *control) retry(send func() error) {
	for end := time.Now().Add(busyTime); !c.ended.Load() && send() != nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// takePastCalls keeps the last calls of a leaving rank, and answers the open questions to it.
func (c *control) takePastCalls(from levels.Rank, past *pastCalls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pastCalls[from] = past
	for number, q := range c.questions {
		if f := past.find(q.comm, q.seq, q.digest); q.rank == from && f.state == callPresent {
			c.answer(number, f)
		}
	}
}

// recallCall returns a departed rank's call seq on a communicator.
func (c *control) recallCall(rank levels.Rank, comm CommID, seq, digest uint32) foundCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pastCalls[rank].find(comm, seq, digest)
}

// runApart calls f on a goroutine of its own, awaited by endNotes. It reports false, without a
// call, if the job is being left.
func (c *control) runApart(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		return false
	}
	c.background.Go(f)
	return true
}

// question is one to a rank about a call.
type question struct {
	rank        levels.Rank
	comm        CommID
	seq, digest uint32
	answers     chan<- answer
}

// answer is a rank's answer about its call.
type answer struct {
	rank levels.Rank
	foundCall
}

// answer answers a question, once. c.mu is held.
func (c *control) answer(number uint32, f foundCall) {
	if q := c.questions[number]; q != nil {
		q.answers <- answer{q.rank, f} // there is room for one from each
		delete(c.questions, number)
	}
}

// askTime bounds the wait for an answer; it only makes an error clearer.
const askTime = time.Second

// callQuery asks for ranks' calls with a number.
type callQuery struct {
	comm   CommID
	seq    uint32
	sender levels.Rank
	digest uint32 // in a message of sender; 0: none
}

// digestOf returns the digest of a rank's call, 0 if unknown.
func (q callQuery) digestOf(rank levels.Rank) uint32 {
	if rank != q.sender {
		return 0
	}
	return q.digest
}

// askCalls adds ranks' calls to found. The sender may be about to leave: then its last calls answer,
// see takePastCalls.
func (c *control) askCalls(ranks []levels.Rank, query callQuery, found map[levels.Rank]foundCall) {
	answers := make(chan answer, len(ranks))
	var numbers []uint32
	for _, r := range ranks {
		q := &question{r, query.comm, query.seq, query.digestOf(r), answers}
		if f := c.recallCall(r, q.comm, q.seq, q.digest); f.state == callPresent {
			found[r] = f
			continue
		}
		c.mu.Lock()
		c.lastQuestion++
		number := c.lastQuestion
		c.questions[number] = q
		c.mu.Unlock()
		if c.send(r, callQuestionControl, note{Comm: q.comm, Seq: q.seq, Question: number, Digest: q.digest}) == nil || r == query.sender {
			numbers = append(numbers, number)
		} else {
			c.dropQuestions(number)
		}
	}
	end := time.NewTimer(askTime)
	defer end.Stop()
	for range numbers {
		select {
		case a := <-answers:
			found[a.rank] = a.foundCall
		case <-end.C:
			c.dropQuestions(numbers...)
			return
		}
	}
}

// dropQuestions lets go of questions without an answer.
func (c *control) dropQuestions(numbers ...uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range numbers {
		delete(c.questions, n)
	}
}

// inquire asks a rank of another process. Without room in the control plane it asks nobody; the
// stall report remains.
func (c *control) inquire(q inquiry) {
	_ = c.send(q.to, inquireControl, note{Comm: q.comm, Seq: q.seq, Digest: q.digest, Call: q.call})
}

// directNote is a note for a rank out of the control tree's reach, because a rank in between has left.
// It goes over a connection with purpose NotePurpose: for each note its length plus 1 in 4 bytes,
// big-endian, its kind in one byte, and the note.
type directNote struct {
	to   levels.Rank
	kind uint8
	note []byte
}

// NotePurpose is the purpose of a connection for notes.
const NotePurpose uint8 = 3

// directTime bounds sending a direct note, and reading one.
const directTime = 2 * time.Second

// maxDirect bounds the length of a direct note, bytes.
const maxDirect = 1 << 20

// mostCarriers bounds the direct notes on their way at one time.
const mostCarriers = 16

// queueDirect queues a note behind those before it to its rank. A silent host delays the notes to
// it, not those to others.
func (c *control) queueDirect(e directNote) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, carried := c.direct[e.to]
	c.direct[e.to] = append(before, e)
	if carried {
		return
	}
	if c.directDone == nil {
		c.directDone = make(chan struct{})
	}
	go c.sendDirectNotes(e.to) // awaitDirect waits for it
}

// sendDirectNotes sends the notes to one rank until there are none.
func (c *control) sendDirectNotes(to levels.Rank) {
	for more := true; more; {
		c.carriers <- struct{}{} // before the next note is taken: the job may be left meanwhile
		var e directNote
		if e, more = c.nextDirect(to); more {
			_ = c.deliverDirect(e) // a rank out of reach has left, or is lost
		}
		<-c.carriers
	}
}

// nextDirect takes the next note to a rank. Without one, or once the job is being left, its
// sender ends.
func (c *control) nextDirect(to levels.Rank) (e directNote, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.direct[to]
	if len(waiting) > 0 && !c.ended.Load() {
		c.direct[to] = waiting[1:]
		return waiting[0], true
	}
	delete(c.direct, to)
	if len(c.direct) == 0 {
		close(c.directDone)
		c.directDone = nil
	}
	return e, false
}

// deliverDirect sends a note to its rank.
func (c *control) deliverDirect(e directNote) error {
	conn, err := c.deliverBy(c.job.Dial, e)
	if err == nil {
		conn.Close()
	}
	return err
}

// deliverBy is deliverDirect with a way to connect. It leaves the connection open for more.
func (c *control) deliverBy(dial func(ctx context.Context, to levels.Rank, purpose uint8) (net.Conn, error), e directNote) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), directTime)
	defer cancel()
	conn, err := dial(ctx, e.to, NotePurpose)
	if err != nil {
		return nil, err
	}
	if err := writeDirect(conn, e); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// writeDirect writes a note to a connection.
func writeDirect(conn net.Conn, e directNote) error {
	if err := conn.SetDeadline(time.Now().Add(directTime)); err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(1+len(e.note)))
	_, err := conn.Write(append(append(b, e.kind), e.note...))
	return err
}

// awaitDirect waits until all notes are sent, or ctx ends.
func (c *control) awaitDirect(ctx context.Context) {
	c.mu.Lock()
	carried := c.directDone
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

// endNotes stops sending and reading notes.
func (c *control) endNotes() {
	c.mu.Lock()
	c.ended.Store(true)
	c.mu.Unlock()
	c.background.Wait()
}
