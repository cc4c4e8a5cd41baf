package circulant

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// exchange is one rank's part in an allreduce of as many shards as there are ranks. Its
// own shard has its number.
type exchange struct {
	e    *submodules.Emitter
	c    *submodules.Call
	g    graph
	gate dag.ID   // the end of the round before
	open []dag.ID // its steps
}

// allreduce is a reduce-scatter of shards and an allgather. Neighbouring shards go together. In
// the first round a rank is done with half of the shards, rounded down.
//
//	n = 5      rank 0 sends            and adds
//	round 0    shards 1, 2 to 2        shards 4, 0 from 3
//	round 1    shard 3 to 3            shard 0 from 2
//	round 2    shard 4 to 4            shard 0 from 1
//	           shares                  and gets
//	round 3    shard 0 with 1          shard 4 from 4
//	round 4    shard 0 with 2          shard 3 from 3
//	round 5    shards 4, 0 with 3      shards 1, 2 from 2
func allreduce(e *submodules.Emitter, c *submodules.Call) {
	x := &exchange{e: e, c: c, g: newGraph(len(c.Group.Ranks)), gate: submodules.None}
	if c.Dst.Len == 0 {
		x.signal()
		return
	}
	x.halve()
	for k := range x.g.phase() {
		to, from := x.g.placeAhead(c.Me, k), x.g.placeBehind(c.Me, k)
		for _, s := range x.shards(c.Dst, c.Me, k) {
			x.add(e.Send(x.rank(to), s, x.gate))
		}
		for _, s := range x.shards(c.Dst, from, k) {
			x.add(e.Recv(x.rank(from), s, x.gate))
		}
		x.end()
	}
}

// halve is the reduce-scatter.
func (x *exchange) halve() {
	c, sum := x.c, x.c.Src
	var room tasks.Span
	for k := x.g.phase() - 1; k >= 0; k-- {
		to, from := x.g.placeBehind(c.Me, k), x.g.placeAhead(c.Me, k)
		for _, s := range x.shards(sum, to, k) {
			x.add(x.e.Send(x.rank(to), s, x.gate))
		}
		mine, dst, at := x.shards(sum, c.Me, k), x.shards(c.Dst, c.Me, k), int64(0)
		if room.Region == 0 { // no later round has more
			room = x.e.Scratch(tasks.TotalLen(mine))
		}
		for i, s := range mine {
			in := room.Cut(at, s.Len)
			at += s.Len
			a, b := s, in
			if from < c.Me {
				a, b = b, a
			}
			x.add(x.e.Reduce(dst[i], a, b, x.e.Recv(x.rank(from), in, x.gate)))
		}
		if k == x.g.phase()-1 {
			x.keepOdd()
		}
		x.end()
		sum = c.Dst
	}
}

// keepOdd adds copying one shard in the first round between an odd number of ranks: it is
// neither sent nor added to.
func (x *exchange) keepOdd() {
	n := x.g.n
	if n%2 == 0 || x.c.Src == x.c.Dst {
		return
	}
	i := (x.c.Me - n/2 + n) % n
	if s := x.c.Src.Shard(i, n, x.c.Elem); s.Len > 0 {
		x.add(x.e.Copy(x.c.Dst.Shard(i, n, x.c.Elem), s, x.gate))
	}
}

// signal has the rounds of the allgather with messages without bytes: at the end
// everybody has heard of everybody.
func (x *exchange) signal() {
	for k := range x.g.phase() {
		x.add(x.e.Send(x.rank(x.g.placeAhead(x.c.Me, k)), x.c.Dst, x.gate))
		x.add(x.e.Recv(x.rank(x.g.placeBehind(x.c.Me, k)), x.c.Dst, x.gate))
		x.end()
	}
	if x.c.Src != x.c.Dst {
		x.e.Copy(x.c.Dst, x.c.Src, x.gate)
	}
}

// shards are a rank's shards of a vector in a round of the allgather, as messages: its own and
// those before it, as many as the receiver lacks.
func (x *exchange) shards(s tasks.Span, rank, k int) (all []tasks.Span) {
	n := x.g.n
	first := rank - (x.g.skips[k+1] - x.g.skips[k]) + 1
	if first < 0 {
		all = x.cut(all, s, first+n, n-1)
		first = 0
	}
	return x.cut(all, s, first, rank)
}

// cut adds the bytes of some shards as messages.
func (x *exchange) cut(all []tasks.Span, s tasks.Span, first, last int) []tasks.Span {
	n := x.g.n
	from, to := s.Shard(first, n, x.c.Elem), s.Shard(last, n, x.c.Elem)
	most := x.c.Inner
	if most <= 0 {
		most = s.Len
	}
	for at, end := from.Off-s.Off, to.Off-s.Off+to.Len; at < end; at += most {
		all = append(all, s.Cut(at, min(most, end-at)))
	}
	return all
}

func (x *exchange) rank(member int) levels.Rank { return x.c.Group.Ranks[member] }

func (x *exchange) add(step dag.ID) { x.open = append(x.open, step) }

// end closes a round.
func (x *exchange) end() {
	if len(x.open) > 0 {
		x.gate, x.open = x.e.Join(x.open...), x.open[:0]
	}
}
