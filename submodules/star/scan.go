package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// scan: each rank adds its piece to the sum that the one before it offers, straight from
// where it is, and offers its own; or they send the sums.
//
//	each   await reduce notify  offer tell  await    or   recv reduce send
func scan(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	l := link{e: e, c: c, m: m}
	if c.Me > 0 {
		l.in.peer = c.Group.Ranks[c.Me-1]
	}
	if !c.IsLast() {
		l.out.peer = c.Group.Ranks[c.Me+1]
	}
	for off, n := range c.Pieces() {
		switch {
		case n == 0 && !c.IsLast():
			e.Notify(l.out.peer, tasks.Span{}, l.heard())
		case n == 0:
			l.heard()
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

// link is one rank in the row of those that scan.
type link struct {
	e       *submodules.Emitter
	c       *submodules.Call
	m       Medium
	in, out stream
}

// heard waits until the rank before has come, if there is one.
func (l *link) heard() dag.ID {
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
	var before tasks.Span
	var last dag.ID
	if l.m.sends(n) {
		before, last = l.in.take(l.e, n)
	} else {
		last = l.e.Await(l.in.peer)
		before = submodules.Exposed(last, 0, n)
	}
	if sum.Region != 0 {
		last = l.e.Reduce(sum, before, src, last)
	}
	added := last
	if below.Region != 0 {
		last = l.e.Copy(below, before, last)
	}
	if l.m.sends(n) {
		l.in.used(last)
	} else {
		l.e.Notify(l.in.peer, tasks.Span{}, last)
	}
	l.give(sum, added)
}

// prefix: the leader offers what comes before the group, the members put it before what
// they have, straight from there; or it sends it.
//
//	leader   offer tell…               await…    or   send…
//	member         await reduce notify                recv reduce
func prefix(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Me == c.Group.Leader {
		prefixLeader(e, c, m)
		return
	}
	lead := c.Group.Lead()
	in := stream{peer: lead}
	for off, n := range c.Pieces() {
		switch {
		case m.sends(n):
			at, got := in.take(e, n)
			in.used(e.Join(c.Precede(e, at, off, n, got)...))
		case n == 0:
			e.Await(lead)
		default:
			told := e.Await(lead)
			e.Notify(lead, tasks.Span{}, c.Precede(e, submodules.Exposed(told, 0, n), off, n, told)...)
		}
	}
}

func prefixLeader(e *submodules.Emitter, c *submodules.Call, m Medium) {
	to := streams(c)
	for off, n := range c.Pieces() {
		data := c.Src.Cut(off, n)
		c.Precede(e, data, off, n)
		if m.sends(n) {
			for i := range c.Others() {
				to[i].send(e, data, submodules.None)
			}
			continue
		}
		if n == 0 {
			for _, r := range c.Others() {
				e.Notify(r, tasks.Span{})
			}
			continue
		}
		out := m.Offer(e, data)
		for _, r := range c.Others() {
			out.Tell(e, r)
		}
		for _, r := range c.Others() {
			e.Await(r, out.Step)
		}
	}
}
