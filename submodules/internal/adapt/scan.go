package adapt

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// chainScan: each rank adds its data to the sum from the one before, and sends the result on,
// piece by piece.
//
//	time →   0     1     2     3     4
//	inner 0  recv  add   send
//	inner 1        recv  add   send
//	inner 2              recv  add   send
func chainScan(e *submodules.Emitter, c *submodules.Call) {
	if c.Alone(e) {
		return
	}
	l := link{c: c}
	l.in.from, l.out.to = c.Group.Ranks[c.Member(c.Me-1)], c.Group.Ranks[c.Member(c.Me+1)]
	for off, n := range c.Pieces() {
		if c.Me == 0 {
			l.begin(e, off, n)
		} else {
			l.pass(e, off, n)
		}
	}
}

// link is one rank of a chain.
type link struct {
	c    *submodules.Call
	in   inlet
	out  outlet
	sums [MaxSends]tasks.Span // those that this rank only sends on, until they are sent
}

// begin sends the first rank's piece on.
func (l *link) begin(e *submodules.Emitter, off, n int64) {
	src, through := l.c.Src.Cut(off, n), l.c.Scan.Through.Cut(off, n)
	if through.Region != 0 && through != src {
		e.Ready(e.Copy(through, src))
	}
	l.out.send(e, src, submodules.None)
}

// pass adds this rank's piece to the sum of the ranks before it.
func (l *link) pass(e *submodules.Emitter, off, n int64) {
	src, below, through := l.c.Src.Cut(off, n), l.c.Scan.Below.Cut(off, n), l.c.Scan.Through.Cut(off, n)
	before := below
	if !l.c.ArrivesBelow() {
		before = l.in.room(e, n).Cut(0, n)
	}
	last := l.in.recv(e, before, submodules.None)
	switch {
	case through.Region != 0 || l.c.IsLast():
	case src.Region == tasks.Scratch: // a total that nobody needs any more
		through = src
	default:
		through = l.room(e, n)
	}
	if through.Region != 0 {
		last = e.Reduce(through, before, src, last, l.out.sent.Before(MaxSends))
	}
	if !l.c.IsLast() {
		l.out.send(e, through, last)
	}
	if below.Region != 0 && before != below {
		last = e.Copy(below, before, last)
	}
	l.in.noteUse(last)
	e.Ready(last)
}

// room is the place of the next sum to be sent.
func (l *link) room(e *submodules.Emitter, n int64) tasks.Span {
	sum := &l.sums[l.out.sent.Turn(MaxSends)]
	if sum.Region == 0 {
		*sum = e.Scratch(n)
	}
	return sum.Cut(0, n)
}

// prefix sends the leader's prefix down a tree, piece by piece; each rank puts it before its own
// values.
//
//	time →   0     1          2          3
//	inner 0  recv  send  add
//	inner 1        recv       send  add
func prefix(shape trees.Shape) lowering {
	return func(e *submodules.Emitter, c *submodules.Call) {
		at := seatsFrom(c.Group.Leader, c)
		place := shape(at.me, at.n)
		near := at.neighbours(place.Parent, place.LargestFirst())
		in, out := inlet{from: near.parent}, fan{to: outlets(near.children)}
		for off, n := range c.Pieces() {
			data, got := c.Src.Cut(off, n), submodules.None
			if near.parent != nobody {
				if data = c.Scan.Below.Cut(off, n); !c.ArrivesBelow() {
					data = in.room(e, n).Cut(0, n)
				}
				got = in.recv(e, data, submodules.None)
			}
			sent := out.send(e, data, got)
			put := c.Precede(e, data, off, n, got)
			if near.parent != nobody {
				in.noteUse(e.Join(append(append(sent, put...), got)...))
				put = append(put, got)
			}
			e.Ready(put...)
		}
	}
}
