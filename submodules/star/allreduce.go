package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// allreduce: all offer their data to all, or send it, and each combines all of it in the order of ranks.
// That is one exchange in place of a reduce and a bcast, of the bytes of all other ranks.
//
//	each   offer tell…  await… reduce… notify…  await…    or   send… recv… reduce…
func allreduce(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	x := exchange{e, c, m, streams(c), streams(c)}
	for off, n := range c.Pieces() {
		if n == 0 {
			x.meet()
			return
		}
		x.piece(c.Src.Cut(off, n), c.Dst.Cut(off, n))
	}
}

// exchange is one rank's part in an allreduce.
type exchange struct {
	e       *submodules.Emitter
	c       *submodules.Call
	m       Medium
	out, in []stream
}

// meet waits until all have come.
func (x *exchange) meet() {
	for _, r := range x.c.Others() {
		x.e.Notify(r, tasks.Span{})
	}
	for _, r := range x.c.Others() {
		x.e.Await(r)
	}
}

// piece combines all ranks' src in dst.
func (x *exchange) piece(src, dst tasks.Span) {
	own, direct := x.give(src)
	sends := x.m.sends(src.Len)
	all := make([]operand, len(x.c.Group.Ranks))
	all[x.c.Me] = operand{src, submodules.None}
	for i := range x.c.Others() {
		if sends {
			all[i].at, all[i].ready = x.in[i].take(x.e, src.Len)
		} else {
			all[i] = x.in[i].operand(x.e, src.Len, x.m)
		}
	}
	from := 0
	switch { // in place, what is in dst is needed
	case src == dst && direct:
		from = len(all)
	case src == dst:
		from = len(all) - 1
	}
	sum := combine(x.e, all, dst, from, own...)
	if read := x.taken(sum.ready, sends); sum.at != dst {
		sum.ready = x.e.Copy(dst, sum.at, append(read, sum.ready)...)
	}
	x.e.Ready(sum.ready)
}

// give lets the others have src. src may be written over after the steps in done. If
// direct, the others read src in place, possibly after done.
func (x *exchange) give(src tasks.Span) (done []dag.ID, direct bool) {
	if x.m.sends(src.Len) {
		for i := range x.c.Others() {
			done = append(done, x.out[i].send(x.e, src, submodules.None))
		}
		return done, false
	}
	offered := x.m.Offer(x.e, src)
	for _, r := range x.c.Others() {
		offered.Tell(x.e, r)
	}
	return []dag.ID{offered.Step}, offered.Span == src
}

// taken tells the others that their data has been used after a step. It returns the steps that end when
// they have read this rank's.
func (x *exchange) taken(last dag.ID, sends bool) (read []dag.ID) {
	for i, r := range x.c.Others() {
		if sends {
			x.in[i].used(last)
		} else {
			x.e.Notify(r, tasks.Span{}, last)
		}
	}
	for _, r := range x.c.Others() {
		if !sends {
			read = append(read, x.e.Await(r))
		}
	}
	return read
}
