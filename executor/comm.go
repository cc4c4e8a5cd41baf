package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Comm is one rank's end of a communicator: the order of its runs, and the messages for runs not
// begun yet. All its ranks start the same runs in the same order.
type Comm struct {
	e             *Endpoint
	id            CommID
	parent        origin              // the call that made it
	agreements    uint32              // calls of Agree
	seal          *submodules.Program // see Seal; nil: none
	completeCalls uint32              // calls with complete data here, up to the first one without; counted with a seal
	succeeded     bool                // Shrink has made another one for its program
	successor     *Comm               // that one, until all have left it; nil: none
	leftOut       []levels.Rank       // of the world: this rank's program goes on without them, see Shrink
	counters      Counters
	isStarting    bool // a call is being started, by a function that may release the lock
	waitedFor     *Run // the last one whose caller waits in it, or waited; nil: none
	membership
	callOrder
	condition
	mail

	askedLate  time.Time // last question of another process about states, after a deadline
	askedStall time.Time // last one after a stall
}

// membership is the ranks of a communicator, and the ones that have left it or died.
type membership struct {
	ranks          []levels.Rank           // of the world, by rank of the communicator
	local          []int32                 // rank of the communicator, by rank of the world; -1: none; nil until it is made here
	me             levels.Rank             // of the communicator
	departures     []departure             // ranks that have left
	heldDepartures []departure             // heard just before it breaks, and counted from then on
	byeHalves      map[levels.Rank]byeHalf // by rank of the world
	onwardRanks    []levels.Rank           // of the world, leaving to go on with others according to the control tree, see departure
	departed       rankSet                 // ranks of the communicator, departed or dead
	abstainers     []levels.Rank           // members, as ranks of the world, that have never made it and never will
}

// callOrder is the calls of a rank on a communicator: the past ones, those on their way, and the
// messages for later ones.
type callOrder struct {
	seq           uint32         // calls started: the number of the next one
	runs          []*Run         // on their way, the oldest first
	earlyMessages []earlyMessage // arrived before their call, or their pass
	past          []record       // the last pastRuns runs, by seq; nil until it is made here
}

// condition says whether a communicator is whole, and if not, why.
type condition struct {
	broken        error         // nil: it is whole
	heard         bool          // the program knows that it is broken: a call has failed
	cause         failure       // of broken, by ranks of the world; its err is nil in a communicator that is whole or only closed
	pendingCause  failure       // the cause while the others are being told, just before it breaks; its err is nil before
	announcement  *announcement // of pendingCause; nil before
	hasLeft       bool          // this rank has closed it
	quitCause     error         // the reason why this rank left without the program's Close; nil: it hasn't
	earlyFailures []failure     // of a communicator this rank hasn't made yet
	disownedCalls []disowned    // calls on it that have failed on a rank
	limit         *limit        // nil: none of its calls fails because of a departure
}

// origin is the call that made a communicator, known or not.
type origin struct {
	comm  CommID
	seq   uint32
	known bool
}

// disowned is a call that failed on a rank: this rank has none of the communicators made by the
// others in it.
type disowned struct {
	seq   uint32
	by    levels.Rank // of the world
	first levels.Rank // of the world, the rank whose failure led to by's; else by
	err   error       // of first
}

// indirectError returns the error for communicators without the first rank.
func (d *disowned) indirectError() error {
	if d.first == d.by {
		return d.err
	}
	return fmt.Errorf("it has given up because of rank %d of the world: %w", d.first, d.err)
}

// departure is a rank that has closed its end, after some number of runs. All its messages have
// arrived.
type departure struct {
	rank levels.Rank // of the world
	seq  uint32
	// fromAll: it has closed the communicator of all ranks. If it ever made this one, a
	// departure of its own gives the number of its runs; else it took part in none.
	fromAll bool
	// broken: the communicator had broken there. Here it is about to break for the same reason, and
	// the break, not the departure, ends the waits for the rank.
	broken bool
	// onward: it goes on with the remaining ranks, on another communicator.
	onward bool
	since  int64 // when this rank heard of it, see Config.stallTime; only with fromAll
}

// byeHalf says which half of a goodbye has come. Between processes the goodbye on a broken
// communicator comes over a link and by the control tree, with the reason, and counts once both are
// here. Goroutine ranks need no second half: the rank breaking the communicator breaks it here,
// too.
type byeHalf uint8

const (
	byLink byeHalf = 1 + iota
	byControl
)

// limit is the end of a communicator's runs, after one rank has left it and another one has started
// a run without it: runs from seq on fail. Earlier runs, with that rank in them, and transfers go
// on.
type limit struct {
	seq uint32
	err *PeerError
}

// announcement is the progress of spreading the word of a break.
type announcement struct {
	told    chan struct{} // closed when other processes have been told
	settled chan struct{} // closed when this process has broken the communicator
}

func newAnnouncement() *announcement { return &announcement{make(chan struct{}), make(chan struct{})} }

// record describes a run, for ranks noticing a mismatch later.
type record struct {
	seq    uint32
	digest uint32
	call   *description // nil: there was none
}

// pastRuns is the number of runs remembered.
const pastRuns = 64

// Counters count the work of one rank on a communicator.
type Counters struct {
	Runs     int64 // started
	Straight int64 // of these, ended without the engine: all their small messages came in time
	Eager    int64 // messages sent without credit
	Direct   int64 // messages sent against credit
	Bytes    int64 // of both kinds
	Copied   int64 // bytes by copy steps
	Reduced  int64 // bytes by reduce steps
	Notifies int64
}

// CommID numbers a communicator, see [wire.CommID].
type CommID = wire.CommID

// ID returns the communicator's number.
func (c *Comm) ID() CommID { return c.id }

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

// numberOf returns the number of a rank of the world in the communicator, -1 if it has none.
func (m *membership) numberOf(r levels.Rank) levels.Rank {
	if int(r) >= len(m.local) {
		return -1
	}
	return levels.Rank(m.local[r])
}

// isMember reports whether a rank of the world is, or was, in the communicator.
func (m *membership) isMember(rank levels.Rank) bool { return m.local != nil && m.local[rank] >= 0 }

// isPresent reports whether a rank of the world is in the communicator and has not left
// it.
func (m *membership) isPresent(rank levels.Rank) bool {
	return m.isMember(rank) && !m.departed.has(m.local[rank])
}

// findRun returns the run on its way with a number, nil if there is none.
func (o *callOrder) findRun(seq uint32) *Run {
	if len(o.runs) > 0 && o.runs[0].seq == seq { // mostly there is one
		return o.runs[0]
	}
	i, ok := slices.BinarySearchFunc(o.runs, seq, func(r *Run, seq uint32) int { return int(int32(r.seq - seq)) })
	if !ok {
		return nil
	}
	return o.runs[i]
}

// hasEnded reports whether the run with a number has begun here; findRun finds it unless it has
// ended.
func (o *callOrder) hasEnded(seq uint32) bool { return int32(seq-o.seq) < 0 }

// findRecord returns the record in the place of a number: of this run, or of another one.
func (o *callOrder) findRecord(seq uint32) *record {
	if o.past == nil {
		return &record{}
	}
	return &o.past[seq%pastRuns]
}

// differsFromPast reports whether m is for another request than the ended run with its number, as far
// as this rank remembers.
func (o *callOrder) differsFromPast(m *wire.Message) bool {
	p := o.findRecord(m.Seq)
	return o.hasEnded(m.Seq) && p.seq == m.Seq && p.digest != m.Digest
}

// isBeyondLimit reports whether a run is beyond the limit.
func (c *condition) isBeyondLimit(seq uint32) bool {
	return c.limit != nil && int32(seq-c.limit.seq) >= 0
}

// isClosed reports whether this rank has closed it, or the world. The lock is held.
func (c *condition) isClosed(stopped bool) bool { return c.hasLeft || stopped || c.broken == ErrClosed }

// whyUnusable returns the reason why the program can't use the communicator, nil if it can.
func (c *condition) whyUnusable() error {
	switch {
	case c.hasLeft, c.broken == ErrClosed:
		return ErrClosed
	case c.broken != nil:
		c.heard = true
		return fmt.Errorf("%w: %w", ErrBroken, c.broken)
	}
	return nil
}

// failure returns this rank's error for a failure on another rank of the world.
func (m *membership) failure(of levels.Rank, err error) *PeerError {
	return &PeerError{Rank: m.numberOf(of), Err: err, world: of + 1}
}

// blameRank notes the failure of a rank of the world. The driver carries it out without the
// engine's lock, see [Endpoint.carryOut].
func (c *Comm) blameRank(rank levels.Rank, err error) {
	c.e.failing = append(c.e.failing, failure{comm: c, peer: rank, err: err})
}

// noteMismatch notes a rank's message for a call with another digest than this rank's.
func (c *Comm) noteMismatch(peer levels.Rank, seq, digest uint32) {
	if c.broken != nil {
		return
	}
	f := failure{comm: c, peer: peer, seq: seq, other: digest}
	if r := c.findRun(seq); r != nil {
		f.mine, f.digest = r.call, r.digest
	} else {
		f.mine, f.digest = c.findRecord(seq).call, c.findRecord(seq).digest
	}
	c.e.failing = append(c.e.failing, f)
}
