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
			take(e, r, c.Parts[i], m, false)
		}
		return
	}
	give(e, lead, c.Held, m)
}

// allgather: all offer their parts to all, and copy those of the others; or they send them.
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
		if offered, _ := share(e, c, to, s, m); !m.sends(s.Len) {
			told = append(told, offered.Step)
		}
	}
	for i, r := range c.Others() {
		take(e, r, c.Parts[i], m, c.Full)
	}
	for _, r := range c.Others() {
		for _, step := range told {
			e.Await(r, step) // it has read the piece
		}
	}
}

// scatter: the leader offers each member its part to copy, or sends it.
//
//	leader   offer tell…          await…    or   send…
//	member         await copy notify             recv…
func scatter(e *submodules.Emitter, c *submodules.Call, m Medium) {
	lead := c.Group.Lead()
	if c.Me != c.Group.Leader {
		take(e, lead, c.Held, m, false)
		return
	}
	c.Keep(e)
	for i, r := range c.Others() {
		give(e, r, c.Parts[i], m)
	}
}

// reduceScatter: all offer all parts to their owners, or send them. Each owner combines them in
// the order of ranks, straight from their memory.
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
			if m.sends(s.Len) {
				at := e.Scratch(s.Len)
				in[j][i] = operand{at, from.recv(e, at)}
			} else {
				in[j][i] = from.read(e, s.Len, m)
			}
		}
	}
	return in
}

// combine reduces operands in their order and returns the result. Partial results go to scratch
// until the operand at from is in. From then on they go to dst, free after the steps named.
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

// give offers a rank spans, one after the other has been copied, or sends them.
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

// take receives spans from a rank, or copies its offers and tells it so. A rank that is full
// hears of the offers and reads none.
func take(e *submodules.Emitter, from levels.Rank, to []tasks.Span, m Medium, full bool) {
	in := stream{peer: from}
	for _, s := range to {
		if m.sends(s.Len) {
			in.recv(e, s)
			continue
		}
		last := e.Await(from)
		if !full {
			last = e.Copy(s, submodules.Exposed(last, 0, s.Len), last)
		}
		e.Notify(from, tasks.Span{}, last)
	}
}
