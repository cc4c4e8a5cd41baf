package executor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Endpoint is one rank's progress engine, for all its communicators and runs.
// Its methods may be called by any goroutine.
type Endpoint struct {
	world   *World
	rank    levels.Rank
	sleeper wire.Sleeper
	memory  wire.Memory
	drawn   atomic.Uint64 // numbers of communicators drawn by this rank
	voter   *ballot.Voter // agrees with other ranks after a death

	mu        sync.Mutex               // guards all below, and the runs' state
	known     knownCalls               // calls started
	comms     commTable                // also those not made by this rank yet
	runs      runQueue                 // started and not finished, of all communicators
	hand      func(dst, src, _ []byte) // copies to memory read by other ranks
	slots     slotRing                 // of calls on this rank
	loans     loans                    // of shared memory, to calls on this rank
	bounces   bounces                  // for operands of another process
	transfers int                      // on their way; 0 <= transfers
	tickets   uint32                   // receives posted
	votes     []string                 // of its program's goroutines, see [flight.State.Votes]
	traffic
	deferredWork
	losses
	driverState
	accounts
}

// commTable is a rank's communicators by number.
type commTable map[CommID]*Comm

// runQueue is runs in their order of service.
type runQueue []*Run

// bounces are the transit memory for the first and second operand of a reduction; nil until needed.
type bounces [2][]byte

// deferredWork are found under the engine's lock and carried out without it, by the driver.
type deferredWork struct {
	failing []failure
	asking  []inquiry
}

// losses are a rank's knowledge of departed and dead ranks of the world.
type losses struct {
	lost     []failure      // ranks that failed or died, for communicators made later
	dead     []levels.Rank  // ranks that have died, or go on without this one
	muted    []levels.Rank  // ranks whose libraries have been silent for too long, as an agreement has found
	ended    []levels.Rank  // ranks of lost that have said so themselves: they take part in nothing any more
	failed   *flight.Failed // the first failure; nil: none
	failedAt time.Time      // when it was met; zero: never
	suspects []suspect      // the oldest first
}

// driverState is the state of driving and waiting: one goroutine drives, the others wait.
type driverState struct {
	driving         bool           // somebody drives
	stopped         bool           // the world closes: nobody drives any more
	caller          atomic.Uint64  // the number of its program's goroutine; 0: unknown; read without the lock
	driver          driver         // its context and goal; while driving
	waiters         []*ending      // awaited while another goroutine drives
	background      sync.WaitGroup // the background driver and callers' operations; World.Close waits for them
	hasBackDriver   bool           // a background driver exists
	backDrives      bool           // the background driver drives
	backDriver      func()         // the background driver; nil before the first
	lastLook        time.Time      // around, by lendThread
	operating       int            // calls with steps at a caller's operation
	awaitsOperation bool           // the driver waits in awaitOperation
	operated        chan struct{}  // capacity 1: it may go on
	impatience      *time.Timer    // lets it go on; nil before the first wait
	impatient       bool           // the timer has fired since it was set
	waitTime        time.Duration  // time with a goroutine waiting, see Activity
	waitCount       uint32         // waits begun, see tickIdle
	undriven        sync.Cond      // nobody drives any more, once stopped; its lock is the engine's
	news            chan struct{}  // see nextNews; nil: nobody pauses
}

// accounts are a rank's counts and times.
type accounts struct {
	samples      *trace.Ring // steps of some calls; nil: none
	tallies      []*Tally    // of calls, the oldest first
	callsUntimed int32       // calls until the next one is timed, see countCall
	stalls       int64       // see Activity
}

// inBackground calls f on a goroutine of its own, awaited by [World.Close]; not at all if the world
// is being closed. The lock is held, but not by f.
func (w *driverState) inBackground(f func()) {
	if !w.stopped {
		w.background.Go(f)
	}
}

// driver is the driver's goal: an ending, none in the background. The context is here only during
// the call it was given to.
type driver struct {
	ctx context.Context
	n   *ending
}

// failure is a reason to break a communicator: err on peer, or a mismatch with it. With both it is
// a mismatch if they run different calls.
type failure struct {
	comm *Comm
	err  error
	peer levels.Rank
	seq  uint32
	// later limits it to the runs from seq on.
	later bool
	// mine is this rank's call seq, running or ended; nil: there can be no mismatch.
	mine   *description
	digest uint32       // of mine
	other  uint32       // digest of the peer's call; 0: unknown, and there is a mismatch only if it turns out to differ
	theirs *description // the peer's call; nil: it has to be asked
}

// suspect is a rank whose link broke, or that left a run while its memory was read. The control
// plane mostly knows more: it said goodbye, or died, or left because another one failed.
type suspect struct {
	comm   *Comm // nil: all communicators of the rank
	rank   levels.Rank
	err    error
	since  time.Time
	number uint32 // of the broken link to it; 0 with comm
}

// inquiry asks a rank missing in a call whether it has ended this call already, and it was another
// one. A probe over the link doesn't reach a rank outside of any call: nobody there polls. So the
// question goes by the control plane, or under the engine's lock in the same process.
type inquiry struct {
	from, to    levels.Rank // of the world
	comm        CommID
	seq, digest uint32
	call        *description
}

// newEndpoint returns the engine of a rank, with no communicator.
func newEndpoint(w *World, p Port) *Endpoint {
	size := len(w.endpoints)
	e := &Endpoint{world: w, rank: p.Rank, traffic: traffic{link: p.Link}, sleeper: p.Sleeper, memory: p.Memory, loans: loans{more: p.Memory.Shared}, comms: commTable{}, hand: (&pieceCopier{}).copy}
	e.undriven.L = &e.mu
	e.flight = flight.New(int(p.Rank), size, w.config.RecorderEvents)
	e.callsUntimed = drawUntimed()
	e.peers = newPeerTable(size, p.Reach, w.limits)
	return e
}

// ensureComm returns a communicator. If this rank doesn't know it yet, it makes room for early
// messages.
func (e *Endpoint) ensureComm(id CommID) *Comm {
	c := e.comms[id]
	if c == nil {
		c = &Comm{e: e, id: id}
		e.comms[id] = c
	}
	return c
}

// noteLost notes a rank of the world as lost: its communicators are broken, and so will be later
// ones. The lock is held.
func (l *losses) noteLost(rank levels.Rank, err error) {
	if !l.isLost(rank) {
		l.lost = append(l.lost, failure{peer: rank, err: err})
	}
}

// hasLost reports whether a rank of the world counts as lost.
func (e *Endpoint) hasLost(rank levels.Rank) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isLost(rank)
}

// isLost is hasLost with the lock held.
func (l *losses) isLost(rank levels.Rank) bool {
	return slices.ContainsFunc(l.lost, func(f failure) bool { return f.peer == rank })
}

// IsReadable reports whether all other ranks of the node may copy straight from this
// rank's memory, wherever it lies.
func (e *Endpoint) IsReadable() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.Readable(nil)
}

// sink is the link's view of the engine.
type sink Endpoint

var _ wire.Sink = (*sink)(nil)

// sink returns the link's view of the engine.
func (e *Endpoint) sink() *sink { return (*sink)(e) }
