package executor

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Endpoint is one rank's progress engine, for all its communicators and runs.
// Its methods may be called by any goroutine.
type Endpoint struct {
	world   *World
	rank    levels.Rank
	link    wire.Link
	sleeper wire.Sleeper
	memory  wire.Memory
	flight  *flight.Ring  // what happened last; guarded by mu
	drawn   atomic.Uint64 // how many numbers of communicators this rank has drawn

	mu      sync.Mutex // guards all below, and the runs' state
	peers   []peerState
	comms   map[CommID]*Comm
	runs    []*Run // started and not finished
	store   blocks
	puts    puts
	bounces [2][]byte // for operands of another process, see Endpoint.bounce
	failing []failure // found under mu, carried out by the driver without it
	asking  []inquiry // likewise
	// outgoing is the message that the link is given just now, nothing afterwards. It
	// is a field because a pointer that goes through an interface escapes: a message on the
	// stack would be an allocation each. Only prepare writes it.
	outgoing wire.Message

	stopped    bool      // the world closes: nobody drives any more
	lost       []failure // ranks that failed or died, for communicators made later
	dead       []levels.Rank
	driving    bool
	driver     driver    // while driving
	waiters    []*ending // waited for while another goroutine drives
	transfers  int       // point-to-point on its way
	tickets    uint32    // receives posted
	background sync.WaitGroup
	suspects   []suspect
	inBack     bool // a background driver exists
	backDrives bool // and drives
}

// peerState is what an engine keeps of one rank, itself included.
type peerState struct {
	flow.Pair
	far     bool    // it is on another node
	said    uint32  // point-to-point messages sent
	heard   uint32  // and received
	landing landing // the large message that comes from there
}

// landing is the step whose bytes a rank's large message brings: looked up with its
// first part, and good until the message is delivered. The zero value is none.
type landing struct {
	run  *Run // nil: none
	step dag.ID
}

// isOf reports whether m is one more part, or the end, of the message that lands in r.
func (l *landing) isOf(r *Run, m *wire.Message) bool {
	if l.run != r || r.seq != m.Seq || r.pass != m.Pass {
		return false
	}
	s := &r.steps[l.step]
	return s.Edge == m.Edge && s.Len() == m.Size && r.flags[l.step]&(reached|arrived|ended) == reached
}

// forgetLandings lets go of a run that fails: nothing lands in it any more.
func (e *Endpoint) forgetLandings(r *Run) {
	for i := range e.peers {
		if l := &e.peers[i].landing; l.run == r {
			*l = landing{}
		}
	}
}

// driver is for whom somebody drives; no ending in the background. The context is
// here only as long as the call that it was given to lasts.
type driver struct {
	ctx context.Context
	n   *ending
}

// failure is a reason to break a communicator: err on peer, or a mismatch with it.
type failure struct {
	comm *Comm
	err  error
	peer levels.Rank
	seq  uint32
	// later limits it to the runs from seq on.
	later bool
}

// suspect is a rank whose link broke, or that left a run while its memory was
// read. The control plane mostly knows more: that it said goodbye, or died, or
// left because another one failed.
type suspect struct {
	comm  *Comm // nil: all that the rank is in
	rank  levels.Rank
	err   error
	since time.Time
}

// suspect waits for the control plane to say more. The lock is held.
func (e *Endpoint) suspect(c *Comm, rank levels.Rank, err error) {
	e.suspects = append(e.suspects, suspect{c, rank, err, time.Now()})
}

func newEndpoint(w *World, p Port) *Endpoint {
	size := len(w.endpoints)
	e := &Endpoint{world: w, rank: p.Rank, link: p.Link, sleeper: p.Sleeper, memory: p.Memory, comms: map[CommID]*Comm{}}
	e.flight = flight.New(int(p.Rank), size, w.config.RecorderEvents)
	e.peers = wire.Apart[peerState](size)
	for i := range e.peers {
		budget := w.limits.NearBudget
		if p.Reach != nil && p.Reach[i] == wire.Far {
			e.peers[i].far, budget = true, w.limits.FarBudget
		}
		e.peers[i].Pair = flow.NewPair(budget)
	}
	return e
}

// comm finds a communicator, or makes room for what arrives for one that this
// rank doesn't know yet.
func (e *Endpoint) comm(id CommID) *Comm {
	c := e.comms[id]
	if c == nil {
		c = &Comm{e: e, id: id}
		e.comms[id] = c
	}
	return c
}

// Alloc takes n zero bytes that the ranks of the node can read in place, until
// free is called, once. They stay mapped after the world is closed.
func (e *Endpoint) Alloc(n int64) (b []byte, free func(), err error) {
	e.enter()
	defer e.mu.Unlock()
	b, free, err = e.memory.Lend(n)
	clear(b)
	return b, free, err
}

// commIDs are the numbers of the communicators that pick picks, ascending.
func (e *Endpoint) commIDs(pick func(c *Comm) bool) []CommID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []CommID
	for id, c := range e.comms {
		if pick(c) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Comm is the rank's end of a communicator, nil if it has none of that number.
func (e *Endpoint) Comm(id CommID) *Comm {
	e.enter()
	defer e.mu.Unlock()
	if c := e.comms[id]; c != nil && c.local != nil {
		return c
	}
	return nil
}

// Close leaves all communicators, see [Comm.Close], that of all ranks last: its goodbye
// counts for all others.
func (e *Endpoint) Close() error {
	e.enter()
	e.mu.Unlock()
	var errs []error
	ids := e.commIDs(func(c *Comm) bool { return c.local != nil })
	slices.Reverse(ids)
	for _, id := range ids {
		if c := e.Comm(id); c != nil {
			errs = append(errs, c.leave(id == 0))
		}
	}
	return errors.Join(errs...)
}

// transmit sends m with its payload, which has been copied when it returns.
func (e *Endpoint) transmit(to levels.Rank, m *wire.Message, payload []byte) {
	e.link.Post(to, e.prepare(to, m), payload)
}

// transmitFrom sends m with the bytes of src, against credit or as a lead. It reports
// whether they have left; if not, their owner is told when they have.
func (e *Endpoint) transmitFrom(to levels.Rank, m *wire.Message, src []byte, by putter) (done bool) {
	token := e.puts.add(by)
	if done = e.link.Put(to, e.prepare(to, m), src, token); done {
		e.puts.take(token)
	}
	return done
}

// prepare copies m to where a link may look at it, and adds what is owed to the
// peer.
func (e *Endpoint) prepare(to levels.Rank, m *wire.Message) *wire.Message {
	e.outgoing = *m
	e.outgoing.Refund = e.peers[to].Settle()
	e.note(flight.Sent, to, &e.outgoing)
	return &e.outgoing
}

// sent ends the send whose bytes have left.
func (e *Endpoint) sent(token int32) {
	switch by := e.puts.take(token); {
	case by.run != nil:
		by.run.end(by.step)
	case by.transfer != nil:
		by.transfer.comm.endTransfer(by.transfer, nil)
	}
}

// consume notes that a message without credit is no longer kept, and gives its budget
// back if that is due.
func (e *Endpoint) consume(from levels.Rank, payload int) {
	if e.peers[from].Consume(int64(payload)) {
		e.transmit(from, &wire.Message{Kind: wire.Return}, nil)
	}
}

// waste consumes a message that nobody will take, if it was charged.
func (e *Endpoint) waste(from levels.Rank, k wire.Kind, payload int) {
	if k == wire.Eager || k == wire.Tagged {
		e.consume(from, payload)
	}
}

// deliver takes one message from the link.
func (e *Endpoint) deliver(from levels.Rank, m *wire.Message, payload []byte) {
	e.note(flight.Received, from, m)
	p := &e.peers[from]
	if !p.Refund(int64(m.Refund)) {
		e.accuse(nil, from, fmt.Errorf("%w: %v message gives back %d bytes that were not sent", ErrProtocol, m.Kind, m.Refund))
	}
	if m.Refund > 0 {
		for _, r := range e.runs {
			r.resume(from)
		}
	}
	switch m.Kind {
	case wire.Return:
		return
	case wire.Tagged, wire.Offer:
		// Nothing else tells a message from one that came before.
		if m.SendTicket != p.heard+1 {
			e.comm(m.Comm).blame(from, fmt.Errorf("%w: %v message %d came after %d", ErrProtocol, m.Kind, m.SendTicket, p.heard))
			return
		}
		p.heard++
	}
	if from == e.rank && e.comms[m.Comm] == nil {
		e.waste(from, m.Kind, len(payload)) // it was closed before this was looked at
		return
	}
	e.comm(m.Comm).deliver(from, m, payload)
}

// accuse breaks the communicators that a rank is in, or only one.
func (e *Endpoint) accuse(only *Comm, rank levels.Rank, err error) {
	for _, c := range e.comms {
		if (only == nil || only == c) && c.broken == nil && (c.includes(rank) || e.puts.towards(c, rank)) {
			c.blame(rank, err)
		}
	}
}

// progress polls the link and executes what is ready. It reports whether there
// was anything to do.
func (e *Endpoint) progress() bool {
	did := e.link.Poll(e.ears())
	for i := len(e.runs) - 1; i >= 0; i-- {
		if i >= len(e.runs) {
			continue // runs ended meanwhile
		}
		r := e.runs[i]
		if (len(r.ready) > 0 || r.left == 0) && !r.stopped() {
			did = true
			r.advance()
		}
	}
	return did
}

// place is where a large payload goes.
func (e *Endpoint) place(from levels.Rank, m *wire.Message) []byte {
	c := e.comms[m.Comm]
	if c == nil || c.local == nil || c.broken != nil {
		return nil
	}
	if m.Kind == wire.Arrived {
		return c.placeTransfer(from, m)
	}
	r := c.find(m.Seq)
	if r == nil || r.pass != m.Pass || r.digest != m.Digest || r.stopped() {
		return nil
	}
	id, err := r.findStep(from, m)
	if err != nil {
		return nil
	}
	if m.Kind == wire.Data {
		e.peers[from].landing = landing{r, id}
	}
	return r.span(r.steps[id].Dst)[m.Offset:]
}

// putter is whose bytes a put moves: a step's, or a transfer's.
type putter struct {
	run      *Run
	step     dag.ID
	transfer *Transfer
}

// puts numbers what is on its way out.
type puts struct {
	all  []putter
	free []int32
}

func (p *puts) add(by putter) int32 {
	if len(p.free) == 0 {
		p.all = append(p.all, by)
		return int32(len(p.all) - 1)
	}
	n := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.all[n] = by
	return n
}

func (p *puts) take(n int32) putter {
	by := p.all[n]
	p.all[n] = putter{}
	p.free = append(p.free, n)
	return by
}

// forget makes the puts of what has failed nobody's, and ends the transfers among
// them: no list has those whose bytes are on their way.
func (p *puts) forget(s wire.Scope) {
	for i, by := range p.all {
		if by.within(s) {
			if t := by.transfer; t != nil {
				t.comm.endTransfer(t, t.comm.broken)
			}
			p.all[i] = putter{}
		}
	}
}

// some tells whether bytes of a communicator are on their way.
func (p *puts) some(c *Comm) bool {
	return slices.ContainsFunc(p.all, func(by putter) bool { return by.within(wire.Scope{Comm: c.id}) })
}

// towards tells whether the bytes of a transfer are on their way to a rank, which may
// have said goodbye since.
func (p *puts) towards(c *Comm, rank levels.Rank) bool {
	return slices.ContainsFunc(p.all, func(by putter) bool {
		return by.transfer != nil && by.transfer.comm == c && by.transfer.peer == rank
	})
}

// blocks keeps payloads that came before their recv was ready. A block has the
// power of two above its payload: together they take at most twice what the
// peers' eager budgets allow.
type blocks struct {
	all  [][]byte
	free [64][]int32 // by class
}

const smallestBlock = 6 // as a power of two: about what a message is charged

func class(size int) int { return max(smallestBlock, bits.Len(uint(size-1))) }

// keep copies a payload and returns its block, -1 for an empty one.
func (b *blocks) keep(payload []byte) int32 {
	if len(payload) == 0 {
		return -1
	}
	at := class(len(payload))
	free := &b.free[at]
	if len(*free) == 0 {
		*free = append(*free, int32(len(b.all)))
		b.all = append(b.all, make([]byte, 1<<at))
	}
	n := (*free)[len(*free)-1]
	*free = (*free)[:len(*free)-1]
	b.all[n] = append(b.all[n][:0], payload...)
	return n
}

func (b *blocks) get(n int32) []byte {
	if n < 0 {
		return nil
	}
	return b.all[n]
}

func (b *blocks) drop(n int32) {
	if n >= 0 {
		at := class(cap(b.all[n]))
		b.free[at] = append(b.free[at], n)
	}
}
