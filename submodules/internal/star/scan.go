package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// scan: each rank adds its piece to the sum offered by the one before it, straight from that
// rank's memory, and offers its own; or they send the sums.
//
//	each   await reduce notify  offer tell  await    or   recv reduce send
func scan(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	l := link{e: e, c: c, m: m}
	l.in.peer, l.out.peer = c.Group.Ranks[c.Member(c.Me-1)], c.Group.Ranks[c.Member(c.Me+1)]
	for off, n := range c.Pieces() {
		switch {
		case n == 0 && !c.IsLast():
			e.Notify(l.out.peer, tasks.Span{}, l.awaitPrevious())
		case n == 0:
			l.awaitPrevious()
		case c.Me == 0:
			if through := c.Scan.Through.Cut(off, n); through.Region != 0 && through != c.Src.Cut(off, n) {
				e.Copy(through, c.Src.Cut(off, n))
			}
			l.give(c.Src.Cut(off, n), submodules.None)
		default:
			l.pass(off, n)
		}
	}
}

// link is one rank of a scan.
type link struct {
	e       *submodules.Emitter
	c       *submodules.Call
	m       Medium
	in, out stream
}

// awaitPrevious waits until the rank before has come, if there is one.
func (l *link) awaitPrevious() dag.ID {
	if l.c.Me == 0 {
		return submodules.None
	}
	return l.e.Await(l.in.peer)
}

// give lets the next rank have a sum, and waits until it has read it.
func (l *link) give(sum tasks.Span, after dag.ID) {
	switch {
	case l.c.IsLast():
	case l.m.sends(sum.Len):
		l.out.send(l.e, sum, after)
	default:
		l.e.Await(l.out.peer, l.m.Offer(l.e, sum, after).Tell(l.e, l.out.peer))
	}
}

// pass adds this rank's piece to the sum of those before it.
func (l *link) pass(off, n int64) {
	src, below, sum := l.c.Src.Cut(off, n), l.c.Scan.Below.Cut(off, n), l.c.Scan.Through.Cut(off, n)
	if sum.Region == 0 && !l.c.IsLast() {
		sum = l.e.Scratch(n)
	}
	before := l.in.read(l.e, n, l.m)
	last := before.ready
	if sum.Region != 0 {
		last = l.e.Reduce(sum, before.at, src, last)
	}
	added := last
	if below.Region != 0 {
		last = l.e.Copy(below, before.at, last)
	}
	l.in.done(l.e, n, l.m, last)
	l.give(sum, added)
}

// prefix: the leader offers the values before the group. The members put them before their own,
// straight from its memory; or it sends them.
//
//	leader   offer tell…               await…    or   send…
//	member         await reduce notify                recv reduce
func prefix(e *submodules.Emitter, c *submodules.Call, m Medium) {
	to, in := streams(c), stream{peer: c.Group.Lead()}
	for off, n := range c.Pieces() {
		switch {
		case c.Me == c.Group.Leader:
			data := c.Src.Cut(off, n)
			c.Precede(e, data, off, n)
			shareAndWait(e, c, to, data, m)
		case n == 0:
			e.Await(in.peer)
		default:
			data := in.read(e, n, m)
			in.done(e, n, m, c.Precede(e, data.at, off, n, data.ready)...)
		}
	}
}
