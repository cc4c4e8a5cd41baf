package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Gather: each member offers its part, the leader copies it to its place.
//
//	member   offer tell           await
//	leader         await copy notify
func Gather(e *submodules.Emitter, c *submodules.Call, offer Offer) {
	lead := c.Group.Lead()
	if c.Me == c.Group.Leader {
		c.Keep(e)
		for i, r := range c.Others() {
			take(e, r, c.Parts[i])
		}
		return
	}
	for _, s := range c.Held {
		e.Await(lead, offer(e, s).Tell(e, lead))
	}
}

// Allgather: all offer their parts to all, who copy them.
//
//	each   keep  offer tell…  await… copy… notify…  await…
func Allgather(e *submodules.Emitter, c *submodules.Call, offer Offer) {
	c.Keep(e)
	if len(c.Group.Ranks) == 1 {
		return
	}
	told := make([]dag.ID, 0, len(c.Held))
	for _, s := range c.Held {
		mine := offer(e, s)
		for _, r := range c.Others() {
			mine.Tell(e, r)
		}
		told = append(told, mine.Step)
	}
	for i, r := range c.Others() {
		take(e, r, c.Parts[i])
	}
	for _, r := range c.Others() {
		for _, step := range told {
			e.Await(r, step) // it has read that piece
		}
	}
}

// take copies what a rank offers, span by span, and tells it so.
func take(e *submodules.Emitter, from levels.Rank, to []tasks.Span) {
	for _, s := range to {
		told := e.Await(from)
		got := e.Copy(s, submodules.Exposed(told, 0, s.Len), told)
		e.Notify(from, tasks.Span{}, got)
	}
}
