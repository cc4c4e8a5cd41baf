package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// allreduce: all offer their data to all, or send it, and each combines all of it in the order
// of ranks. One exchange of the bytes of all other ranks takes the place of a reduce and a
// bcast.
//
//	each   offer tell…  await… reduce… notify…  await…    or   send… recv… reduce…
func allreduce(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	x := exchange{e, c, m, streams(c), streams(c)}
	for off, n := range c.Pieces() {
		if n == 0 {
			notifyOthers(e, c)
			for _, r := range c.Others() {
				e.Await(r)
			}
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

// piece combines all ranks' src in dst.
func (x *exchange) piece(src, dst tasks.Span) {
	offered, own := share(x.e, x.c, x.out, src, x.m)
	if !x.m.sends(src.Len) {
		own = []dag.ID{offered.Step}
	}
	all := make([]operand, len(x.c.Group.Ranks))
	all[x.c.Me] = operand{src, submodules.None}
	for i := range x.c.Others() {
		all[i] = x.in[i].read(x.e, src.Len, x.m)
	}
	from := 0
	switch { // in place, the data in dst is needed
	case src == dst && offered.Span == src: // the others read it there
		from = len(all)
	case src == dst:
		from = len(all) - 1
	}
	sum := combine(x.e, all, dst, from, own...)
	for i := range x.c.Others() {
		x.in[i].done(x.e, src.Len, x.m, sum.ready)
	}
	var read []dag.ID // the steps after which the others have read this rank's offer
	for _, r := range x.c.Others() {
		if !x.m.sends(src.Len) {
			read = append(read, x.e.Await(r))
		}
	}
	if sum.at != dst {
		sum.ready = x.e.Copy(dst, sum.at, append(read, sum.ready)...)
	}
	x.e.Ready(sum.ready)
}
