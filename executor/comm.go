package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/ballot"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Comm is one rank's end of a communicator: the order of its runs, and what has
// arrived for runs that haven't begun. Runs on one communicator are started in
// the same order on all its ranks.
type Comm struct {
	e        *Endpoint
	id       CommID
	ranks    []levels.Rank           // of the world, by rank of the communicator
	local    []int32                 // rank of the communicator, by rank of the world; -1: none; nil until it is made here
	me       levels.Rank             // of the communicator
	parent   origin                  // the call that made it
	seq      uint32                  // calls started: the number of the next one
	runs     []*Run                  // of them on their way, the oldest first
	early    []earlyMessage          // came before their call, or their pass
	past     []record                // the last pastRuns runs, by seq; nil until it is made here
	broken   error                   // why it can't be used; nil: it can
	cause    failure                 // why it broke, by ranks of the world; its err is nil in one that is whole or only closed
	telling  failure                 // why it is about to break, once the others have been told; its err is nil before
	news     *news                   // of telling; nil before
	left     bool                    // this rank has closed it
	foretold []failure               // of a communicator that this rank hasn't made yet
	disowned []disowned              // calls on it that have failed on a rank
	gone     []departure             // ranks that have left
	held     []departure             // heard just before it breaks: they count from then on
	halves   map[levels.Rank]byeHalf // of goodbyes that come twice
	onward   []levels.Rank           // of the world, whose goodbye by the control tree says so, see departure
	away     rankSet                 // ranks of the communicator that have left, or died
	never    []levels.Rank           // of the world, members that have never made it and never will
	agreed   uint32                  // calls of Agree
	seal     *submodules.Program     // see Seal; nil: none
	complete uint32                  // calls with complete data here, up to the first one without; counted with a seal
	next     *Comm                   // what it has shrunk to; nil: nothing
	quit     error                   // why this rank has left it though nobody has closed it; nil: it hasn't
	limit    *limit                  // nil: no call has failed because of those
	counters Counters
	starting bool // a call is being started, by a function that may let go of the lock
	mail

	askedLate  time.Time // when another process was last heard to ask what the ranks are in, because of a deadline
	askedStall time.Time // or because of a stall
}

// origin is the call that made a communicator, known or not.
type origin struct {
	comm  CommID
	seq   uint32
	known bool
}

// disowned is a call in which a rank failed: it has none of the communicators that
// others may have made in it.
type disowned struct {
	seq   uint32
	by    levels.Rank // of the world
	first levels.Rank // of the world, whose failure made by's; else by
	err   error       // of first
}

// otherwise is the error where the first one is no member.
func (d *disowned) otherwise() error {
	if d.first == d.by {
		return d.err
	}
	return fmt.Errorf("it has given up because of rank %d of the world: %w", d.first, d.err)
}

// departure is a rank that has closed its end, after some number of runs. Nothing that
// it sent is still on its way.
type departure struct {
	rank levels.Rank // of the world
	seq  uint32
	// fromAll: it has closed the communicator of all ranks. If it ever made this one, a
	// departure of its own says after how many runs; else it took part in none.
	fromAll bool
	// broken: the communicator had broken there. Here it is about to break for the same
	// reason; that, not the departure, ends what waits for the rank.
	broken bool
	// onward: it goes on with those who are left, on another communicator.
	onward bool
	since  time.Time // when this rank heard of it; only of one fromAll
}

// byeHalf is which half of a goodbye has come. Between processes one over a link, on a
// communicator that is broken, doesn't count until the control tree has said goodbye too,
// with the reason. Between goroutine ranks whoever breaks it is about to break it here too.
type byeHalf uint8

const (
	byLink byeHalf = 1 + iota
	byControl
)

// limit is where the runs of a communicator end, because a rank has left it and
// another one has started a run without it: those from seq on fail. The ones
// before, in which that rank took part, and transfers go on.
type limit struct {
	seq uint32
	err error
}

// news is how far the news is that a communicator breaks.
type news struct {
	told    chan struct{} // closed when other processes have been told
	settled chan struct{} // closed when it has had its effect on this process
}

func newNews() *news { return &news{make(chan struct{}), make(chan struct{})} }

// record is what a run was, for those who come late to disagree.
type record struct {
	seq    uint32
	digest uint32
	call   *description // nil: there was none
}

// pastRuns is how many runs are remembered.
const pastRuns = 64

// Counters count what one rank has done on a communicator.
type Counters struct {
	Runs     int64 // started
	Straight int64 // of them, ended without the engine: all their small messages came in time
	Eager    int64 // messages sent without credit
	Direct   int64 // and against credit
	Bytes    int64 // of both
	Copied   int64 // bytes by copy steps
	Reduced  int64 // bytes by reduce steps
	Notifies int64
}

// CommID numbers a communicator, see [wire.CommID].
type CommID = wire.CommID

// ID returns the communicator's number.
func (c *Comm) ID() CommID { return c.id }

// topic is an agreement on the communicator.
func (c *Comm) topic(round uint32) ballot.Topic { return ballot.Topic{Comm: c.id, Round: round} }

// Ranks returns the members as ranks of the world, by rank of the communicator.
func (c *Comm) Ranks() []levels.Rank { return slices.Clone(c.ranks) }

// Endpoint returns the engine of this rank.
func (c *Comm) Endpoint() *Endpoint { return c.e }

// Rank returns this rank's number in the communicator.
func (c *Comm) Rank() levels.Rank { return c.me }

// Size returns the number of ranks.
func (c *Comm) Size() int { return len(c.ranks) }

// members returns its ranks, of the world; nil for all.
func (c *Comm) members() rankSet {
	if c.id == 0 || c.local == nil {
		return nil
	}
	set := newRankSet(len(c.local))
	for _, r := range c.ranks {
		set.set(int32(r))
	}
	return set
}

// numberOf returns the number of a rank of the world in the communicator, -1 if it has
// none.
func (c *Comm) numberOf(r levels.Rank) levels.Rank {
	if int(r) >= len(c.local) {
		return -1
	}
	return levels.Rank(c.local[r])
}

// isMember reports whether a rank of the world is, or was, in the communicator.
func (c *Comm) isMember(rank levels.Rank) bool { return c.local != nil && c.local[rank] >= 0 }

// isPresent reports whether a rank of the world is in the communicator and has not left
// it.
func (c *Comm) isPresent(rank levels.Rank) bool {
	return c.isMember(rank) && !c.away.has(c.local[rank])
}

// findRun returns the run on its way that has a number, nil if there is none.
func (c *Comm) findRun(seq uint32) *Run {
	if len(c.runs) > 0 && c.runs[0].seq == seq { // mostly there is one
		return c.runs[0]
	}
	i, ok := slices.BinarySearchFunc(c.runs, seq, func(r *Run, seq uint32) int { return int(int32(r.seq - seq)) })
	if !ok {
		return nil
	}
	return c.runs[i]
}

// hasEnded reports whether the run with that number has ended here.
func (c *Comm) hasEnded(seq uint32) bool { return int32(seq-c.seq) < 0 }

// remembered returns the record of the run with that number, or of another one.
func (c *Comm) remembered(seq uint32) *record {
	if c.past == nil {
		return &record{}
	}
	return &c.past[seq%pastRuns]
}

// hasDiffered reports whether m is for another request than the one that has ended here
// under its number, as far as that is still known.
func (c *Comm) hasDiffered(m *wire.Message) bool {
	p := c.remembered(m.Seq)
	return c.hasEnded(m.Seq) && p.seq == m.Seq && p.digest != m.Digest
}

// isLate reports whether a run is beyond the limit.
func (c *Comm) isLate(seq uint32) bool { return c.limit != nil && int32(seq-c.limit.seq) >= 0 }

// isClosed reports whether this rank has closed it. The lock is held.
func (c *Comm) isClosed() bool { return c.left || c.e.stopped || c.broken == ErrClosed }

// whyUnusable returns why the communicator can't be used, nil if it can.
func (c *Comm) whyUnusable() error {
	switch {
	case c.left, c.broken == ErrClosed:
		return ErrClosed
	case c.broken != nil:
		return fmt.Errorf("%w: %w", ErrBroken, c.broken)
	}
	return nil
}

// failure returns the error on this rank for a failure on another one of the world.
func (c *Comm) failure(of levels.Rank, err error) *PeerError {
	return &PeerError{Rank: c.numberOf(of), Err: err, world: of + 1}
}

// blameRank notes that a rank of the world has failed. The driver carries it out
// without the engine's lock, see [Endpoint.carryOut].
func (c *Comm) blameRank(rank levels.Rank, err error) {
	c.e.failing = append(c.e.failing, failure{comm: c, peer: rank, err: err})
}

// noteMismatch notes that a rank has sent a message for a call with another digest than this one's.
func (c *Comm) noteMismatch(peer levels.Rank, seq, digest uint32) {
	if c.broken != nil {
		return
	}
	f := failure{comm: c, peer: peer, seq: seq, other: digest}
	if r := c.findRun(seq); r != nil {
		f.mine, f.digest = r.call, r.digest
	} else {
		f.mine, f.digest = c.remembered(seq).call, c.remembered(seq).digest
	}
	c.e.failing = append(c.e.failing, f)
}
