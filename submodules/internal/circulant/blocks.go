package circulant

import (
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// MaxReceives is how many receives of a rank are ready at once. A rank has one send under way:
// blocks must leave in the order of rounds. One overtaking others would reach a rank that
// expects another.
const MaxReceives = 8

// seat is a rank's place in the graph of its group: the leader's is 0.
type seat struct {
	turns []turn
	parts []tasks.Span // of Dst, by block
}

func newSeat(c *submodules.Call) (s seat) {
	for off, n := range c.Pieces() {
		s.parts = append(s.parts, c.Dst.Cut(off, n))
	}
	s.turns = newGraph(len(c.Group.Ranks)).turns(c.Seat(), len(s.parts))
	return s
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
	var used submodules.Window
	sent := submodules.None
	for _, t := range s.turns {
		if t.out != none {
			sent = e.Send(c.RankAt(t.to), s.parts[t.out], got[t.out], sent)
		}
		if t.in != none {
			got[t.in] = e.Recv(c.RankAt(t.from), s.parts[t.in], used.Before(MaxReceives))
			used.Put(MaxReceives, got[t.in])
			e.Ready(got[t.in])
		}
	}
	if c.Me == c.Group.Leader {
		e.ReadyAtStart()
	}
}

// reduce is the bcast backwards: the sum of a block goes to the rank that the block came from,
// as soon as the sums of all its receivers have been added. Each rank but the leader sends every
// block once.
func reduce(e *submodules.Emitter, c *submodules.Call) {
	s := newSeat(c)
	var rooms [MaxReceives]tasks.Span
	sums := make([]dag.ID, len(s.parts)) // by block: the last reduction
	data := make([]tasks.Span, len(s.parts))
	at := int64(0)
	for i, p := range s.parts {
		data[i], sums[i] = c.Src.Cut(at, p.Len), submodules.None
		at += p.Len
	}
	var used submodules.Window
	sent := submodules.None
	for _, t := range slices.Backward(s.turns) {
		if t.in != none {
			sent = e.Send(c.RankAt(t.from), data[t.in], sums[t.in], sent)
		}
		if t.out == none {
			continue
		}
		room := &rooms[used.Turn(MaxReceives)]
		if room.Region == 0 {
			*room = e.Scratch(s.parts[0].Len) // the first block is the largest
		}
		from, part := c.RankAt(t.to), room.Cut(0, s.parts[t.out].Len)
		got := e.Recv(from, part, used.Before(MaxReceives))
		a, b := data[t.out], part
		if from < c.Group.Ranks[c.Me] {
			a, b = b, a
		}
		sums[t.out] = e.Reduce(s.parts[t.out], a, b, sums[t.out], got)
		data[t.out] = s.parts[t.out]
		used.Put(MaxReceives, sums[t.out])
	}
}
