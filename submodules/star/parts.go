package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// gather: each member offers its part, the leader copies it to its place; or the
// member sends it there.
//
//	member   offer tell           await    or   send
//	leader         await copy notify            recv
func gather(e *submodules.Emitter, c *submodules.Call, m Medium) {
	lead := c.Group.Lead()
	if c.Me == c.Group.Leader {
		c.Keep(e)
		for i, r := range c.Others() {
			take(e, r, c.Parts[i], m)
		}
		return
	}
	give(e, lead, c.Held, m)
}

// allgather: all offer their parts to all, who copy them; or they send them.
//
//	each   keep  offer tell…  await… copy… notify…  await…    or   send… recv…
//
// A rank that is full copies nothing.
func allgather(e *submodules.Emitter, c *submodules.Call, m Medium) {
	c.Keep(e)
	if len(c.Group.Ranks) == 1 {
		return
	}
	to, told := streams(c), make([]dag.ID, 0, len(c.Held))
	for _, s := range c.Held {
		if m.sends(s.Len) {
			for i := range c.Others() {
				to[i].send(e, s, submodules.None)
			}
			continue
		}
		mine := m.Offer(e, s)
		for _, r := range c.Others() {
			mine.Tell(e, r)
		}
		told = append(told, mine.Step)
	}
	for i, r := range c.Others() {
		if c.Full {
			decline(e, r, c.Parts[i], m)
		} else {
			take(e, r, c.Parts[i], m)
		}
	}
	for _, r := range c.Others() {
		for _, step := range told {
			e.Await(r, step) // it has read that piece
		}
	}
}

// scatter: the leader offers each member its part, which copies it; or it sends the
// part.
//
//	leader   offer tell…          await…    or   send…
//	member         await copy notify             recv…
func scatter(e *submodules.Emitter, c *submodules.Call, m Medium) {
	lead := c.Group.Lead()
	if c.Me != c.Group.Leader {
		take(e, lead, c.Held, m)
		return
	}
	c.Keep(e)
	for i, r := range c.Others() {
		give(e, r, c.Parts[i], m)
	}
}

// reduceScatter: all offer all parts to their owners, or send them, who combine them
// in the order of ranks, straight from where they are.
//
//	each   offer tell…  await… reduce… notify…  await…    or   send… recv… reduce…
func reduceScatter(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	for i, r := range c.Others() {
		out := stream{peer: r}
		for _, s := range c.Parts[i] {
			if m.sends(s.Len) {
				out.send(e, s, submodules.None)
			} else {
				m.Offer(e, s).Tell(e, r)
			}
		}
	}
	in := operands(e, c, m)
	for j, dst := range c.Held {
		from := 0
		if dst == c.Parts[c.Me][j] {
			from = c.Me // this rank's own data is there until its turn comes
		}
		sum := combine(e, in[j], dst, from)
		for i, r := range c.Others() {
			if !m.sends(dst.Len) {
				e.Notify(r, tasks.Span{}, sum.ready, in[j][i].ready)
			}
		}
		e.Ready(sum.ready)
	}
	for i, r := range c.Others() {
		for _, s := range c.Parts[i] {
			if !m.sends(s.Len) {
				e.Await(r)
			}
		}
	}
}

// operand is one rank's piece of a combination, and the step that brings it.
type operand struct {
	at    tasks.Span
	ready dag.ID
}

// operand is the next piece of a rank: where that offers it, or in scratch.
func (s *stream) operand(e *submodules.Emitter, n int64, m Medium) operand {
	if m.sends(n) {
		at := e.Scratch(n)
		return operand{at, s.recv(e, at)}
	}
	told := e.Await(s.peer)
	return operand{submodules.Exposed(told, 0, n), told}
}

// operands are all ranks' pieces of this rank's part, by piece and member.
func operands(e *submodules.Emitter, c *submodules.Call, m Medium) [][]operand {
	in := make([][]operand, len(c.Held))
	for j := range in {
		in[j] = make([]operand, len(c.Group.Ranks))
		in[j][c.Me] = operand{c.Parts[c.Me][j], submodules.None}
	}
	for i, r := range c.Others() {
		from := stream{peer: r}
		for j, s := range c.Held {
			in[j][i] = from.operand(e, s.Len, m)
		}
	}
	return in
}

// combine reduces operands in their order and returns the result. Partial results
// go to scratch until the operand at from is in, and from then on to dst, which is
// free after the steps named.
func combine(e *submodules.Emitter, all []operand, dst tasks.Span, from int, free ...dag.ID) operand {
	sum, to := all[0], dst
	if from > 1 {
		to = e.Scratch(dst.Len)
	}
	for i := 1; i < len(all); i++ {
		after := []dag.ID{sum.ready, all[i].ready}
		if i == from {
			to, after = dst, append(after, free...)
		}
		sum = operand{to, e.Reduce(to, sum.at, all[i].at, after...)}
	}
	return sum
}

// give offers a rank spans, each until that has copied it, or sends them.
func give(e *submodules.Emitter, to levels.Rank, spans []tasks.Span, m Medium) {
	out := stream{peer: to}
	for _, s := range spans {
		if m.sends(s.Len) {
			out.send(e, s, submodules.None)
		} else {
			e.Await(to, m.Offer(e, s).Tell(e, to))
		}
	}
}

// take copies what a rank offers, span by span, and tells it so, or receives it.
func take(e *submodules.Emitter, from levels.Rank, to []tasks.Span, m Medium) {
	in := stream{peer: from}
	for _, s := range to {
		if m.sends(s.Len) {
			in.recv(e, s)
			continue
		}
		told := e.Await(from)
		got := e.Copy(s, submodules.Exposed(told, 0, s.Len), told)
		e.Notify(from, tasks.Span{}, got)
	}
}

// decline hears of a rank's offers and reads none. Sent pieces come all the same.
func decline(e *submodules.Emitter, from levels.Rank, to []tasks.Span, m Medium) {
	in := stream{peer: from}
	for _, s := range to {
		if m.sends(s.Len) {
			in.recv(e, s)
			continue
		}
		e.Notify(from, tasks.Span{}, e.Await(from))
	}
}
