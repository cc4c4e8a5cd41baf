package planner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/tasks"
)

// The errors of this package's calls, see package executor.
var (
	ErrClosed    = executor.ErrClosed
	ErrBroken    = executor.ErrBroken
	ErrMismatch  = executor.ErrMismatch
	ErrBusy      = executor.ErrBusy
	ErrTruncated = executor.ErrTruncated
	ErrUnwound   = executor.ErrUnwound
)

// Errors with details.
type (
	PeerError     = executor.PeerError
	MismatchError = executor.MismatchError
	StepError     = executor.StepError
	LateError     = executor.LateError
)

// Comm is one rank's end of a communicator: the world's, or one that Split or Dup
// made. Calls that create collectives may be made by any goroutine. Collectives of one
// communicator, Split and Dup among them, are started one after the other, in the same
// order on all ranks; those of different communicators are independent.
type Comm struct {
	comm     *executor.Comm
	world    *world
	topology *levels.Topology
	policy
	memo    *memo
	trials  trials
	derived bool // made by Split or Dup: the world is another Comm's to close

	mu       sync.Mutex
	cache    map[tasks.Request]*Collective // of the one-shot calls; nil when closed
	cacheUse cacheUse                      // what cache holds
	// recent are some calls of PrepareNow that are in cache.
	recent    [recents]recent
	spare     spare // exchanges that have ended
	exchanged int   // exchanges so far: the same on all ranks
	// counts is the last call that told counts, for the next one; nil: none, or in use.
	counts *countsCall
	// next is what the communicator has shrunk to, with change; nil: it hasn't.
	next   *Comm
	change Change
	// scalar holds the value of the next AllreduceValue; nil: none yet, or in use.
	scalar *scalar
	turn   turn          // of Turn
	note   func() string // a line for Explain; nil: none
}

// countsCall is the call in which ranks tell each other their counts. A communicator keeps
// one for its next alltoallv.
type countsCall struct {
	col   *Collective
	table []int64 // a row for each rank: its bits, what it gives each rank, what it gets
}

// scalar has room for any element that operations combine: these hold no pointers, and the
// largest are complex128 and a tasks.Loc of 8 bytes.
type scalar [2]uint64

// turn is when ranks look next who waits.
type turn struct {
	left, calls int       // calls of Turn until they look, and between the last two looks
	looked      time.Time // last; zero: never
}

// entered is how a world's rank has joined, for joining again.
type entered struct {
	config  join.Config
	options *Options
}

// world counts the ranks of this process that have not closed yet.
type world struct {
	*executor.World
	open  atomic.Int32
	quiet func()    // ends dumps on SIGQUIT; nil without
	guest *join.Job // knows how connections between nodes are secured; nil: of goroutine ranks
	lent  sync.Map  // unsafe.Pointer of what Alloc returned → func() that frees it

	tables sync.Mutex // held to add to the table that is kept
	calls  *calls     // of rank 0; nil: nobody counts them

	entered entered
	before  sync.WaitGroup // closes the world that this one has taken the place of
	whole   atomic.Bool    // all ranks that live have been heard in this world

	door          *door.Door // nil: there is none
	doorRecording string     // where its ranks record unless they are told where; empty: nowhere
}

// Rank is this rank's number, from 0.
func (c *Comm) Rank() int {
	c.mustBeMade()
	return int(c.comm.Rank())
}

// worldRank is a rank's number in the world.
func (c *Comm) worldRank() levels.Rank { return c.comm.Ranks()[c.comm.Rank()] }

// Size is the number of ranks.
func (c *Comm) Size() int {
	c.mustBeMade()
	return c.topology.Size()
}

// Topology is where the ranks are.
func (c *Comm) Topology() *levels.Topology {
	c.mustBeMade()
	return c.topology
}

// Secured says how what passes between nodes is kept from others on the way, for people:
// "TLS 1.3, X25519MLKEM768, AES-128-GCM, by the job's secret", or "no connection between
// nodes" where TLS is on and there is none. With certificates it says until when this rank's
// holds. Empty: it is not, or the ranks are goroutines.
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
	return c.links
}

// Counters counts what this rank has done on the communicator.
func (c *Comm) Counters() executor.Counters {
	c.mustBeMade()
	return c.comm.Counters()
}

// made is an error unless a function of this package made c.
func (c *Comm) made() error {
	if c == nil || c.comm == nil {
		return errNoComm
	}
	c.world.RefuseOperations() // before any lock is taken
	return nil
}

// mustBeMade is made for methods that can't return an error.
func (c *Comm) mustBeMade() {
	if c == nil || c.comm == nil {
		panic(errNoComm)
	}
}

// usable is an error if a call can't begin: without a context, or a communicator.
func (c *Comm) usable(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return c.made()
}

// rank is a rank that a caller gave, if it is one of c. It is looked at before it is
// cut to the bits of a [levels.Rank].
func (c *Comm) rank(what string, n int) (levels.Rank, error) {
	if n < 0 || n >= c.Size() {
		return 0, fmt.Errorf("%s %d: ranks are 0 to %d", what, n, c.Size()-1)
	}
	return levels.Rank(n), nil
}
