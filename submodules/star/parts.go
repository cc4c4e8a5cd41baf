package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Gather: each member offers its part, the leader copies it to its place; or the
// member sends it there.
//
//	member   offer tell           await    or   send
//	leader         await copy notify            recv
func Gather(e *submodules.Emitter, c *submodules.Call, m Medium) {
	lead := c.Group.Lead()
	if c.Me == c.Group.Leader {
		c.Keep(e)
		for i, r := range c.Others() {
			take(e, r, c.Parts[i], m)
		}
		return
	}
	out := stream{peer: lead}
	for _, s := range c.Held {
		if m.sends(s.Len) {
			out.send(e, s, submodules.None)
		} else {
			e.Await(lead, m.Offer(e, s).Tell(e, lead))
		}
	}
}

// Allgather: all offer their parts to all, who copy them; or they send them.
//
//	each   keep  offer tell…  await… copy… notify…  await…    or   send… recv…
func Allgather(e *submodules.Emitter, c *submodules.Call, m Medium) {
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
		take(e, r, c.Parts[i], m)
	}
	for _, r := range c.Others() {
		for _, step := range told {
			e.Await(r, step) // it has read that piece
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
