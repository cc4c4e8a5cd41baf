package executor

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Comm is one rank's end of a communicator: the order of its runs, and what has
// arrived for runs that haven't begun. Runs on one communicator are started in
// the same order on all its ranks.
type Comm struct {
	e        *Endpoint
	id       CommID
	ranks    []levels.Rank // of the world, by rank of the communicator
	local    []int32       // rank of the communicator, by rank of the world; -1
	me       levels.Rank   // of the communicator
	parent   origin        // the call that made it
	seq      uint32        // runs started
	runs     []*Run        // of them on their way, the oldest first
	early    []earlyMessage
	past     []record // the last pastRuns runs, by seq; nil until it is made here
	broken   error
	cause    failure   // why, by ranks of the world; its err is nil in one that is whole or only closed
	telling  failure   // why it is about to break, once the others have been told; its err is nil before
	left     bool      // this rank has closed it
	foretold []failure // of a communicator that this rank hasn't made yet
	disowned []disowned
	gone     []departure
	held     []departure             // heard just before it breaks: they count from then on
	halves   map[levels.Rank]byeHalf // of goodbyes that come twice
	away     rankSet                 // ranks of the communicator that have left, or died
	limit    *limit                  // nil: no call has failed because of those
	counters Counters
	starting bool // a run, in a function that may let go of the lock
	mail
}

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

// Counters returns a snapshot.
func (c *Comm) Counters() Counters {
	c.e.enter()
	defer c.e.mu.Unlock()
	return c.counters
}

// earlyMessage came before its run, or before its pass.
type earlyMessage struct {
	wire.Message
	from  levels.Rank
	block int32
}

// pastRuns is how many runs are remembered.
const pastRuns = 64

// remembered is the run that had this number, or another one.
func (c *Comm) remembered(seq uint32) *record {
	if c.past == nil {
		return &record{}
	}
	return &c.past[seq%pastRuns]
}

// record is what a run was, for those who come late to disagree.
type record struct {
	seq    uint32
	digest uint32
	call   *description // nil: there was none
}

// ID is the communicator's number.
func (c *Comm) ID() CommID { return c.id }

// Ranks are the members, by rank of the communicator, as ranks of the world.
func (c *Comm) Ranks() []levels.Rank { return slices.Clone(c.ranks) }

// Endpoint is the engine of this rank.
func (c *Comm) Endpoint() *Endpoint { return c.e }

// number is a rank of the world as the communicator counts it, -1 if it is none
// of its ranks.
func (c *Comm) number(r levels.Rank) levels.Rank {
	if int(r) >= len(c.local) {
		return -1
	}
	return levels.Rank(c.local[r])
}

// Rank is this rank's number in the communicator.
func (c *Comm) Rank() levels.Rank { return c.me }

// Size is the number of ranks.
func (c *Comm) Size() int { return len(c.ranks) }

// find returns the run on its way that has a number, nil if there is none.
func (c *Comm) find(seq uint32) *Run {
	if len(c.runs) > 0 && c.runs[0].seq == seq { // mostly there is one
		return c.runs[0]
	}
	i, ok := slices.BinarySearchFunc(c.runs, seq, func(r *Run, seq uint32) int { return int(int32(r.seq - seq)) })
	if !ok {
		return nil
	}
	return c.runs[i]
}

// deliver takes a message for this communicator.
func (c *Comm) deliver(from levels.Rank, m *wire.Message, payload []byte) {
	if m.Kind == wire.Bye {
		alone := c.e.world.control == nil
		if !m.Broken || alone || c.wholeBye(from, byLink) { // the other half says what is broken
			c.e.hearBye(c, departure{rank: from, seq: m.Seq, broken: m.Broken && alone})
		}
		return
	}
	if c.broken != nil || slices.ContainsFunc(c.foretold, func(f failure) bool { return !f.later }) {
		c.e.waste(from, m.Kind, len(payload))
		return
	}
	switch {
	case m.Kind.IsPointToPoint():
		c.deliverTransfer(from, m, payload)
		return
	case c.late(m.Seq):
		c.e.waste(from, m.Kind, len(payload))
		return
	}
	r := c.find(m.Seq)
	c.hasCome(from, r, m)
	switch {
	case r != nil && r.digest != m.Digest, r == nil && c.differed(m):
		c.mismatch(from, m.Seq)
		c.e.waste(from, m.Kind, len(payload))
	case r != nil && m.Kind == wire.Probe, r == nil && c.over(m.Seq):
	case r != nil && int32(m.Pass-r.pass) < 0 && m.Kind == wire.Credit: // late, see Run.resume
	case r != nil && int32(m.Pass-r.pass) < 0:
		c.blame(from, fmt.Errorf("%w: %v message for pass %d of call %d, which is in pass %d", ErrProtocol, m.Kind, m.Pass, m.Seq, r.pass))
	case r != nil && r.pass == m.Pass:
		r.deliver(from, m, payload, -1)
	default:
		c.early = append(c.early, earlyMessage{*m, from, c.e.store.keep(payload)})
	}
}

// differed tells whether m is for another request than the one that has ended
// here under its number, as far as that is still known.
func (c *Comm) differed(m *wire.Message) bool {
	p := c.remembered(m.Seq)
	return c.over(m.Seq) && p.seq == m.Seq && p.digest != m.Digest
}

// member tells whether a rank of the world is, or was, in the communicator.
func (c *Comm) member(rank levels.Rank) bool { return c.local != nil && c.local[rank] >= 0 }

// includes tells whether a rank of the world is in the communicator and has not
// left it.
func (c *Comm) includes(rank levels.Rank) bool {
	return c.member(rank) && !c.away.has(c.local[rank])
}

// over tells whether the run with that number has ended here.
func (c *Comm) over(seq uint32) bool { return int32(seq-c.seq) < 0 }

// catchUp hands the run's pass what came before it.
func (c *Comm) catchUp(r *Run) {
	kept := c.early[:0]
	for _, m := range c.early {
		if m.Seq == r.seq {
			r.came.set(c.local[m.from])
		}
		switch {
		case m.Seq != r.seq:
			kept = append(kept, m)
		case m.Digest != r.digest:
			c.mismatch(m.from, m.Seq)
			kept = append(kept, m) // for dropEarly
		case m.Kind == wire.Probe:
		case m.Pass != r.pass:
			kept = append(kept, m)
		default:
			r.deliver(m.from, &m.Message, c.e.store.get(m.block), m.block)
		}
	}
	clear(c.early[len(kept):])
	c.early = kept
}

// disagreed looks for a message for the run that came before it from a rank that
// calls something else. Messages meet the digest of a run with steps when they are
// delivered; this is for one that ends without any.
func (c *Comm) disagreed(r *Run) bool {
	i := slices.IndexFunc(c.early, func(m earlyMessage) bool {
		return m.Seq == r.seq && m.Digest != r.digest
	})
	if i < 0 {
		return false
	}
	c.mismatch(c.early[i].from, r.seq)
	c.drop(&c.early[i])
	c.early = slices.Delete(c.early, i, i+1)
	return true
}
