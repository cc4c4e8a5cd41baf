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

// Scatter: the leader offers each member its part, which copies it.
//
//	leader   offer tell…          await…
//	member         await copy notify
func Scatter(e *submodules.Emitter, c *submodules.Call, offer Offer) {
	lead := c.Group.Lead()
	if c.Me != c.Group.Leader {
		take(e, lead, c.Held)
		return
	}
	c.Take(e)
	for i, r := range c.Others() {
		for _, s := range c.Parts[i] {
			e.Await(r, offer(e, s).Tell(e, r))
		}
	}
}

// ReduceScatter: all offer all parts to their owners, who combine them in the order
// of ranks, straight from where they are.
//
//	each   offer tell…  await… reduce… notify…  await…
func ReduceScatter(e *submodules.Emitter, c *submodules.Call, offer Offer) {
	n := len(c.Group.Ranks)
	if n == 1 {
		c.Take(e)
		return
	}
	for i, r := range c.Others() {
		for _, s := range c.Parts[i] {
			offer(e, s).Tell(e, r)
		}
	}
	told := make([][]dag.ID, n)
	for i, r := range c.Others() {
		for range c.Held {
			told[i] = append(told[i], e.Await(r))
		}
	}
	for j, dst := range c.Held {
		e.Ready(combine(e, c, j, dst, told))
	}
	for i, r := range c.Others() {
		for range c.Parts[i] {
			e.Await(r)
		}
	}
}

// combine adds reducing the j-th span of this rank's part from all ranks.
func combine(e *submodules.Emitter, c *submodules.Call, j int, dst tasks.Span, told [][]dag.ID) dag.ID {
	operand := func(i int) (tasks.Span, dag.ID) {
		if i == c.Me {
			return c.Parts[i][j], submodules.None
		}
		return submodules.Exposed(told[i][j], 0, dst.Len), told[i][j]
	}
	sum, last := operand(0)
	to := dst
	if c.Me > 1 && dst == c.Parts[c.Me][j] {
		to = e.Scratch(dst.Len) // this rank's own data is there, and its turn comes later
	}
	for i := 1; i < len(c.Group.Ranks); i++ {
		next, ready := operand(i)
		if i >= c.Me {
			to = dst
		}
		last = e.Reduce(to, sum, next, last, ready)
		sum = to
	}
	for i, r := range c.Others() {
		e.Notify(r, tasks.Span{}, last, told[i][j])
	}
	return last
}

// take copies what a rank offers, span by span, and tells it so.
func take(e *submodules.Emitter, from levels.Rank, to []tasks.Span) {
	for _, s := range to {
		told := e.Await(from)
		got := e.Copy(s, submodules.Exposed(told, 0, s.Len), told)
		e.Notify(from, tasks.Span{}, got)
	}
}
