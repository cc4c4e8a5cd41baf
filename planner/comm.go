package planner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// Kinds of errors of calls, for errors.Is. The guide's page of errors has a cause and a remedy for each.
var (
	ErrClosed    = executor.ErrClosed    // the communicator was closed on this rank
	ErrBroken    = executor.ErrBroken    // the communicator is broken by an earlier failure, see [Comm.Err]
	ErrMismatch  = executor.ErrMismatch  // ranks call different things, see [MismatchError]
	ErrBusy      = executor.ErrBusy      // the call would overlap another one
	ErrTruncated = executor.ErrTruncated // a message is longer than its receive has room for
	ErrElements  = executor.ErrElements  // a message has elements of another type
	ErrUnwound   = executor.ErrUnwound   // a rank has panicked, or ended its goroutine
	ErrAborted   = executor.ErrAborted   // a rank has called [Comm.Abort]
)

// Errors with details; [errors.AsType] finds them. Their fields: go doc github.com/tierflow/tierflow/executor LateError.
type (
	// PeerError names the rank that has failed, and why.
	PeerError = executor.PeerError
	// MismatchError has what each rank has called, if the calls differ. Odd are the ranks with another call than most.
	MismatchError = executor.MismatchError
	// StepError is a failure inside a collective, such as that of an operation, with the step.
	StepError = executor.StepError
	// LateError has the ranks for which a call waited when its time was over, and what each was doing.
	LateError = executor.LateError
)

// Comm is one rank's end of a communicator: the world's, or one made by Split or Dup.
// Any goroutine may create collectives. Collectives of one
// communicator, Split and Dup among them, are started one after the other, in the same
// order on all ranks. So goroutines that make calls at the same time need a communicator each,
// such as by Dup: a call that would overlap another one, while both wait for their ends, returns
// [ErrBusy]. Different communicators are independent.
type Comm struct {
	base
	decisions
	world   *world
	derived bool // made by Split or Dup: the world is another Comm's to close

	store      store
	scalar     atomic.Pointer[scalar] // room for the value of the next AllreduceValue; nil: none yet, or in use
	succession succession
	turn       turn          // of Turn
	note       func() string // a line for Explain; nil: none
}

// succession says which communicator took a communicator's place.
type succession struct {
	mu     sync.Mutex
	change Change // by Shrink or Grow; its Comm is nil: none
}

// get returns the change to the successor; its Comm is nil: there is none.
func (s *succession) get() Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change
}

// set sets the successor.
func (s *succession) set(change Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = change
}

// settle returns the change to the successor, made unless there is one.
func (s *succession) settle(create func() (Change, error)) (Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.change.Comm != nil {
		return s.change, nil
	}
	change, err := create()
	if err == nil {
		s.change = change
	}
	return change, err
}

// turn says at which call of [Comm.Turn] the ranks look for waiting processes again.
type turn struct {
	left, calls int       // calls of Turn until they look, and between the last two looks
	lastLook    time.Time // last; zero: never
}

// newComm returns this rank's end of a communicator without calls.
func newComm(b base, w *world, p policy) *Comm {
	return &Comm{base: b, decisions: decisions{policy: p, memo: &memo{}}, world: w, store: store{kept: newKept()}}
}

// newest returns the last successor of c; c if it has none.
func (c *Comm) newest() *Comm {
	for next := c.succession.get().Comm; next != nil; next = c.succession.get().Comm {
		c = next
	}
	return c
}

// Rank is this rank's number, from 0.
func (c *Comm) Rank() int {
	c.mustBeMade()
	return int(c.comm.Rank())
}

// Size is the number of ranks.
func (c *Comm) Size() int {
	c.mustBeMade()
	return c.topology.Size()
}

// Topology is the layout of the ranks.
func (c *Comm) Topology() *levels.Topology {
	c.mustBeMade()
	return c.topology
}

// Secured describes the protection of connections between nodes, for people:
// "TLS 1.3, X25519MLKEM768, AES-128-GCM, by the job's secret", or "no connection between
// nodes" if TLS is on and there is none. With certificates it says until when this rank's is
// valid. Empty: they are plain, or the ranks are goroutines.
func (c *Comm) Secured() string {
	c.mustBeMade()
	if c.world.guest == nil {
		return ""
	}
	return c.world.guest.Secured()
}

// Links names the links between nodes, see [Options.Links]; empty: they are unknown.
func (c *Comm) Links() string {
	c.mustBeMade()
	return c.common.Links
}

// counters is raw.Counters.
func (c *Comm) counters() executor.Counters {
	c.mustBeMade()
	return c.comm.Counters()
}

// Err says why the communicator is broken; nil: it isn't, as far as this rank has heard. It sends no message.
func (c *Comm) Err() error {
	c.mustBeMade()
	return c.comm.Err()
}

// checkMade returns an error unless a function of this package made c.
func (c *Comm) checkMade() error {
	if c == nil || c.comm == nil {
		return errNoComm
	}
	return nil
}

// mustBeMade panics unless a function of this package made c. It is for methods without an error.
func (c *Comm) mustBeMade() {
	if c == nil || c.comm == nil {
		panic(errNoComm)
	}
}

// checkCall returns an error if a call can't begin: without a context, or a communicator.
func (c *Comm) checkCall(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return c.checkMade()
}
