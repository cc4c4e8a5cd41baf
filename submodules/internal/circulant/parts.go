package circulant

import (
	"iter"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// maxRounds is the number of a rank's rounds under way in an allgather or a reduce-scatter: one
// arrives while the one before is used.
const maxRounds = 2

// jointBcasts is the broadcasts of all members' parts at once. They share their rounds: in each
// of them a rank sends one other the blocks it lacks of all parts. Broadcasts of fewer blocks
// begin later, and all end together.
type jointBcasts struct {
	e     *submodules.Emitter
	c     *submodules.Call
	turns [][]turn // by owner of the part; none of an empty part
	n     int      // rounds
}

func newJointBcasts(e *submodules.Emitter, c *submodules.Call) *jointBcasts {
	t := &jointBcasts{e: e, c: c, turns: make([][]turn, len(c.Parts))}
	g := newGraph(len(c.Parts))
	for i, part := range c.Parts {
		if len(part) > 0 {
			t.turns[i] = g.turns(c.Member(c.Me-i), len(part))
			t.n = max(t.n, len(t.turns[i]))
		}
	}
	return t
}

// in yields this rank's turns of a round, by the owners of the parts.
func (t *jointBcasts) in(round int) iter.Seq2[int, turn] {
	return func(yield func(int, turn) bool) {
		for i, turns := range t.turns {
			if at := round - (t.n - len(turns)); at >= 0 && !yield(i, turns[at]) {
				return
			}
		}
	}
}

// rank is a member's by its place in the broadcast of another's part.
func (t *jointBcasts) rank(of, place int) levels.Rank {
	return t.c.Group.Ranks[t.c.Member(of+place)]
}

// allgather: in each round a rank gets its missing blocks from one other. Parts of one block
// take ⌈log2 n⌉ rounds.
//
//	n = 5     rank 0 gets
//	round 0   part 4 from 4
//	round 1   part 3 from 3
//	round 2   parts 2, 1 from 2
func allgather(e *submodules.Emitter, c *submodules.Call) {
	t := newJointBcasts(e, c)
	c.Keep(e)
	got := t.perBlock()
	var sent, received gates
	for round := range t.n {
		for i, turn := range t.in(round) {
			if turn.out != none {
				sent.add(e.Send(t.rank(i, turn.to), c.Part(i)[turn.out], got[i][turn.out], sent.gateBefore(1)))
			}
			if turn.in != none {
				got[i][turn.in] = e.Recv(t.rank(i, turn.from), c.Parts[i][turn.in], received.gateBefore(maxRounds))
				received.add(got[i][turn.in])
				e.Ready(got[i][turn.in])
			}
		}
		sent.end(e)
		received.end(e)
	}
}

// reduceScatter is the allgather backwards: the sum of a block goes back where the block came
// from. The sum of a rank's own part is made in its place.
func reduceScatter(e *submodules.Emitter, c *submodules.Call) {
	t := newJointBcasts(e, c)
	made, data := t.perBlock(), make([][]tasks.Span, len(c.Parts))
	for i, part := range c.Parts {
		data[i] = slices.Clone(part)
	}
	var rooms [maxRounds]rooms
	var sent, used gates
	for round := t.n - 1; round >= 0; round-- {
		room := &rooms[len(used.ended)%maxRounds]
		room.next = 0
		for i, turn := range t.in(round) {
			if turn.in != none {
				sent.add(e.Send(t.rank(i, turn.from), data[i][turn.in], made[i][turn.in], sent.gateBefore(1)))
			}
			if turn.out == none {
				continue
			}
			sum, from := &data[i][turn.out], t.rank(i, turn.to)
			in := room.take(e, sum.Len)
			got := e.Recv(from, in, used.gateBefore(maxRounds))
			dst, a, b := *sum, *sum, in
			switch {
			case i == c.Me:
				dst = c.Held[turn.out]
			case sum.Region != tasks.Scratch || made[i][turn.out] == submodules.None:
				dst = e.Scratch(sum.Len)
			}
			if from < c.Group.Ranks[c.Me] {
				a, b = b, a
			}
			made[i][turn.out] = e.Reduce(dst, a, b, made[i][turn.out], got)
			used.add(made[i][turn.out])
			*sum = dst
		}
		sent.end(e)
		used.end(e)
	}
}

// perBlock is no step for each block of all parts.
func (t *jointBcasts) perBlock() [][]dag.ID {
	all := make([][]dag.ID, len(t.c.Parts))
	for i, part := range t.c.Parts {
		all[i] = slices.Repeat([]dag.ID{submodules.None}, len(part))
	}
	return all
}

// gates are the steps that later rounds wait for: all of a kind in a round.
type gates struct {
	ended []dag.ID // by round with such steps
	open  []dag.ID // of the round now
}

// gateBefore returns the gate of some rounds back.
func (g *gates) gateBefore(rounds int) dag.ID {
	if len(g.ended) < rounds {
		return submodules.None
	}
	return g.ended[len(g.ended)-rounds]
}

func (g *gates) add(step dag.ID) { g.open = append(g.open, step) }

// end closes a round. One without steps doesn't count.
func (g *gates) end(e *submodules.Emitter) {
	if len(g.open) > 0 {
		g.ended, g.open = append(g.ended, e.Join(g.open...)), g.open[:0]
	}
}

// rooms are scratch for the arriving blocks of a round.
type rooms struct {
	spans []tasks.Span
	next  int
}

func (r *rooms) take(e *submodules.Emitter, n int64) tasks.Span {
	for ; r.next < len(r.spans); r.next++ {
		if s := r.spans[r.next]; s.Len >= n {
			r.next++
			return s.Cut(0, n)
		}
	}
	s := e.Scratch(n)
	r.spans = append(r.spans, s)
	r.next++
	return s
}
