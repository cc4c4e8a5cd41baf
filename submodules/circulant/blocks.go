package circulant

import (
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// MaxReceives is how many receives of a rank are ready at once. A rank has one send
// under way: blocks must leave in the order of rounds, since one that overtakes others
// is on the wire to a rank whose next block it isn't.
const MaxReceives = 8

// receives are a rank's receives in order; each waits for what uses the one that is
// [MaxReceives] back.
type receives struct {
	used [MaxReceives]dag.ID
	n    int
}

func (r *receives) before() dag.ID {
	if r.n < MaxReceives {
		return submodules.None
	}
	return r.used[r.n%MaxReceives]
}

func (r *receives) put(used dag.ID) {
	r.used[r.n%MaxReceives] = used
	r.n++
}

// seat is a rank's place in the graph of its group: the leader's is 0.
type seat struct {
	c     *submodules.Call
	turns []turn
	parts []tasks.Span // of Dst, by block
}

func newSeat(c *submodules.Call) seat {
	s := seat{c: c}
	for off, n := range c.Pieces() {
		s.parts = append(s.parts, c.Dst.Cut(off, n))
	}
	n := len(c.Group.Ranks)
	s.turns = newGraph(n).turns((c.Me-c.Group.Leader+n)%n, len(s.parts))
	return s
}

func (s *seat) rank(place int) levels.Rank {
	return s.c.Group.Ranks[(place+s.c.Group.Leader)%len(s.c.Group.Ranks)]
}

// bcast: a rank passes a block on when the schedule says so, and hears another one in
// the same round.
//
//	n = 5     rank 0       rank 1       rank 2       rank 3       rank 4
//	round 0   block 0 to 2
//	round 1   block 1 to 3
//	round 2   block 2 to 1              block 0 to 3 block 1 to 4
//	round 3   block 2 to 2              block 0 to 4              block 1 to 1
//	round 4   block 2 to 3 block 2 to 4              block 0 to 1 block 1 to 2
func bcast(e *submodules.Emitter, c *submodules.Call) {
	s := newSeat(c)
	got := slices.Repeat([]dag.ID{submodules.None}, len(s.parts))
	var in receives
	sent := submodules.None
	for _, t := range s.turns {
		if t.out != none {
			sent = e.Send(s.rank(t.to), s.parts[t.out], got[t.out], sent)
		}
		if t.in != none {
			got[t.in] = e.Recv(s.rank(t.from), s.parts[t.in], in.before())
			in.put(got[t.in])
			e.Ready(got[t.in])
		}
	}
	if c.Me == c.Group.Leader {
		e.ReadyAtStart()
	}
}

// reduce is the bcast backwards: where a block came from, its sum goes, as soon as all
// have been added that the block went to. Each rank but the leader sends every block once.
func reduce(e *submodules.Emitter, c *submodules.Call) {
	s := newSeat(c)
	var rooms [MaxReceives]tasks.Span
	sums := make([]dag.ID, len(s.parts)) // by block: what made the sum so far
	data := make([]tasks.Span, len(s.parts))
	at := int64(0)
	for i, p := range s.parts {
		data[i], sums[i] = c.Src.Cut(at, p.Len), submodules.None
		at += p.Len
	}
	var in receives
	sent := submodules.None
	for _, t := range slices.Backward(s.turns) {
		if t.in != none {
			sent = e.Send(s.rank(t.from), data[t.in], sums[t.in], sent)
		}
		if t.out == none {
			continue
		}
		room := &rooms[in.n%MaxReceives]
		if room.Region == 0 {
			*room = e.Scratch(s.parts[0].Len) // the first block is the largest
		}
		from, part := s.rank(t.to), room.Cut(0, s.parts[t.out].Len)
		got := e.Recv(from, part, in.before())
		a, b := data[t.out], part
		if from < c.Group.Ranks[c.Me] {
			a, b = b, a
		}
		sums[t.out] = e.Reduce(s.parts[t.out], a, b, sums[t.out], got)
		data[t.out] = s.parts[t.out]
		in.put(sums[t.out])
	}
}
