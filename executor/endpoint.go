package executor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/ballot"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/trace"
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
	voter   *ballot.Voter // agrees with other ranks after a death
	caller  atomic.Uint64 // the number of the goroutine on which its program runs; 0: unknown

	mu      sync.Mutex  // guards all below, and the runs' state
	peers   []peerState // by rank of the world
	known   knownCalls  // what has been started
	comms   commTable   // also those that this rank has not made yet
	runs    []*Run      // started and not finished, of all communicators, in the order in which they are served
	store   blocks      // payloads that came before their recv was ready
	puts    puts        // whose bytes are on their way out
	hand    handFunc    // copies to where others read it
	slots   slotRing    // of calls on this rank
	bounces [2][]byte   // for operands of another process, see bounceBuffer; nil until needed
	// outgoing is the message that the link is given just now, nothing afterwards. It
	// is a field because a pointer that goes through an interface escapes: a message on the
	// stack would be an allocation each. Only prepare writes it.
	outgoing  wire.Message
	transfers int       // how many are on their way; 0 <= transfers
	tickets   uint32    // receives posted
	operator  *operator // runs callers' operations; nil until there is one
	stopped   bool      // the world closes: nobody drives any more
	duties
	losses
	wheel
	accounts
}

// commTable is a rank's communicators by number.
type commTable map[CommID]*Comm

// duties are what is found under the engine's lock and carried out without it, by the driver.
type duties struct {
	failing []failure
	asking  []inquiry
}

// losses are what a rank knows of ranks of the world that have gone.
type losses struct {
	lost     []failure      // ranks that failed or died, for communicators made later
	dead     []levels.Rank  // ranks that have died
	ended    []levels.Rank  // ranks of lost that have said themselves that they are no more in anything
	failed   *flight.Failed // the first failure; nil: none
	suspects []suspect      // the oldest first
}

// wheel is the goroutine that drives, and those that wait.
type wheel struct {
	driving    bool           // somebody drives
	driver     driver         // for whom; while driving
	waiters    []*ending      // what is waited for while another goroutine drives
	background sync.WaitGroup // the background driver and the operator; World.Close waits for them
	inBack     bool           // a background driver exists
	backDrives bool           // and drives
	back       func()         // the background driver; nil before the first
	looked     time.Time      // when lendThread last looked around
	waited     time.Duration  // that somebody waited, see Activity
	idles      uint32         // waits that have begun, see tickIdle
}

// accounts are what a rank counts and times.
type accounts struct {
	samples *trace.Ring // steps of some calls; nil: none
	tallies []*Tally    // of calls, the oldest first
	untimed int32       // calls until the next one is timed, see Run.count
	stalls  int64       // see Activity
}

// peerState is what an engine keeps of one rank, itself included.
type peerState struct {
	flow.Pair
	far     bool    // it is on another node
	sent    int64   // payload bytes sent to it
	read    int64   // bytes read from where it keeps them
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

// failure is a reason to break a communicator: err on peer, or a mismatch with it. With both it is a mismatch if they run
// different calls.
type failure struct {
	comm *Comm
	err  error
	peer levels.Rank
	seq  uint32
	// later limits it to the runs from seq on.
	later bool
	// mine is what this rank runs or ran as call seq; nil: it is no mismatch, nor could it be one.
	mine   *description
	digest uint32       // of mine
	other  uint32       // of what peer runs; 0: not known, and there is a mismatch only if it is not digest
	theirs *description // what peer runs; nil: it has to be asked
}

// suspect is a rank whose link broke, or that left a run while its memory was
// read. The control plane mostly knows more: that it said goodbye, or died, or
// left because another one failed.
type suspect struct {
	comm   *Comm // nil: all that the rank is in
	rank   levels.Rank
	err    error
	since  time.Time
	number uint32 // of the link to it that broke
}

// inquiry asks a rank that is waited for, and has not come, whether it is through
// with that call already, and it was another one. A probe over the link doesn't
// reach a rank that is in no call: nobody there polls. So this takes the control
// plane, or the engine's lock in the same process.
type inquiry struct {
	from, to    levels.Rank // of the world
	comm        CommID
	seq, digest uint32
	call        *description
}

// newEndpoint returns the engine of a rank, with no communicator.
func newEndpoint(w *World, p Port) *Endpoint {
	size := len(w.endpoints)
	e := &Endpoint{world: w, rank: p.Rank, link: p.Link, sleeper: p.Sleeper, memory: p.Memory, comms: commTable{}, hand: (&handing{}).copy}
	e.flight = flight.New(int(p.Rank), size, w.config.RecorderEvents)
	e.untimed = drawUntimed()
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

// ensureComm returns a communicator. If this rank doesn't know it yet, it makes room
// for what arrives for it.
func (e *Endpoint) ensureComm(id CommID) *Comm {
	c := e.comms[id]
	if c == nil {
		c = &Comm{e: e, id: id}
		e.comms[id] = c
	}
	return c
}

// noteLost notes that all that a rank of the world is in is broken, and will be. The
// lock is held.
func (l *losses) noteLost(rank levels.Rank, err error) {
	if !l.isLost(rank) {
		l.lost = append(l.lost, failure{peer: rank, err: err})
	}
}

// hasLost reports whether all that a rank of the world is in is broken.
func (e *Endpoint) hasLost(rank levels.Rank) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isLost(rank)
}

// isLost is hasLost with the lock held.
func (l *losses) isLost(rank levels.Rank) bool {
	return slices.ContainsFunc(l.lost, func(f failure) bool { return f.peer == rank })
}

// traceTime returns nanoseconds on the clock of traces.
func (e *Endpoint) traceTime() int64 { return int64(time.Since(e.world.config.Hooks.Epoch)) }

// inBackground calls f on a goroutine of its own, which [World.Close] waits for; not at
// all if the world is being closed. The lock is held, but not by f.
func (e *Endpoint) inBackground(f func()) {
	if e.stopped {
		return
	}
	e.background.Add(1)
	go func() {
		defer e.background.Done()
		f()
	}()
}

// transmit sends m with its payload, which has been copied when it returns.
func (e *Endpoint) transmit(to levels.Rank, m *wire.Message, payload []byte) {
	e.peers[to].sent += int64(len(payload))
	e.link.Post(to, e.prepare(to, m), payload)
}

// transmitFrom sends m with the bytes of src, against credit or as a lead. It reports
// whether they have left; if not, their owner is told when they have.
func (e *Endpoint) transmitFrom(to levels.Rank, m *wire.Message, src []byte, by putter) (done bool) {
	e.peers[to].sent += int64(len(src))
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
	e.recordMessage(flight.Sent, to, &e.outgoing)
	return &e.outgoing
}

// recordMessage records a message.
func (e *Endpoint) recordMessage(k flight.Kind, peer levels.Rank, m *wire.Message) {
	e.flight.Message(k, uint8(m.Kind), uint64(m.Comm), m.Seq, m.Pass, int32(peer), m.Edge|m.Tag, m.Size)
}

// consume notes that a message without credit is no longer kept, and gives its budget
// back if that is due.
func (e *Endpoint) consume(from levels.Rank, payload int) {
	if e.peers[from].Consume(int64(payload)) {
		e.transmit(from, &wire.Message{Kind: wire.Return}, nil)
	}
}

// consumeUnwanted consumes a message that nobody will take, if it was charged.
func (e *Endpoint) consumeUnwanted(from levels.Rank, k wire.Kind, payload int) {
	if k == wire.Eager || k == wire.Tagged {
		e.consume(from, payload)
	}
}

// putter is whose bytes a put moves: a step's, or a transfer's.
type putter struct {
	run      *Run
	step     dag.ID
	transfer *Transfer
}

// within reports whether what is put belongs to a scope.
func (by putter) within(s wire.Scope) bool {
	if by.run != nil {
		return by.run.comm.id == s.Comm && (!s.Later || int32(by.run.seq-s.Seq) >= 0)
	}
	return by.transfer != nil && by.transfer.comm.id == s.Comm && !s.Later
}

// puts numbers what is on its way out.
type puts struct {
	all  []putter
	free []int32
}

// add numbers what is put.
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

// take frees a number and returns whose it was.
func (p *puts) take(n int32) putter {
	by := p.all[n]
	p.all[n] = putter{}
	p.free = append(p.free, n)
	return by
}

// hasAny reports whether bytes of a communicator are on their way.
func (p *puts) hasAny(c *Comm) bool {
	return slices.ContainsFunc(p.all, func(by putter) bool { return by.within(wire.Scope{Comm: c.id}) })
}

// hasTowards reports whether the bytes of a transfer are on their way to a rank, which
// may have said goodbye since.
func (p *puts) hasTowards(c *Comm, rank levels.Rank) bool {
	return slices.ContainsFunc(p.all, func(by putter) bool {
		return by.transfer != nil && by.transfer.comm == c && by.transfer.peer == rank
	})
}

// IsReadable reports whether all other ranks of the node may copy straight from this
// rank's memory, wherever it lies.
func (e *Endpoint) IsReadable() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Readable(nil)
}

// ears are the engine as its link sees it.
type ears Endpoint

var _ wire.Sink = (*ears)(nil)

// ears returns the engine as its link sees it.
func (e *Endpoint) ears() *ears { return (*ears)(e) }
