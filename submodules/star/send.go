package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ahead is the number of pieces on their way between two ranks: one being used,
// one arriving, and one for which the receiver is ready.
const ahead = 3

// stream is the pieces that go from one rank to another in messages. Piece i waits
// until the place of piece i−ahead is free. So neither the bytes on their way nor the
// memory grow with the segment.
type stream struct {
	peer  levels.Rank
	n     int
	last  [ahead]dag.ID // the steps after which the places are free again
	place [ahead]tasks.Span
}

func (s *stream) before() dag.ID {
	if s.n < ahead {
		return submodules.None
	}
	return s.last[s.n%ahead]
}

// used records that this piece's place is free once step has ended. It returns step.
func (s *stream) used(step dag.ID) dag.ID {
	s.last[s.n%ahead] = step
	s.n++
	return step
}

func (s *stream) send(e *submodules.Emitter, src tasks.Span, after dag.ID) dag.ID {
	return s.used(e.Send(s.peer, src, after, s.before()))
}

func (s *stream) recv(e *submodules.Emitter, dst tasks.Span) dag.ID {
	return s.used(e.Recv(s.peer, dst, s.before()))
}

// take receives a piece into scratch; the caller says when that is used.
func (s *stream) take(e *submodules.Emitter, n int64) (tasks.Span, dag.ID) {
	at := &s.place[s.n%ahead]
	if at.Len < n {
		*at = e.Scratch(n)
	}
	to := at.Cut(0, n)
	return to, e.Recv(s.peer, to, s.before())
}

// streams are those with the other ranks of the group.
func streams(c *submodules.Call) []stream {
	all := make([]stream, len(c.Group.Ranks))
	for i, r := range c.Others() {
		all[i].peer = r
	}
	return all
}

// fold receives the others' pieces and combines them with this rank's in the order
// of ranks. What comes before this rank's is combined where it came: Dst may hold
// this rank's own.
func fold(e *submodules.Emitter, c *submodules.Call, from []stream, off, n int64) {
	own, dst := c.Src.Cut(off, n), c.Dst.Cut(off, n)
	sum, last := own, submodules.None
	for i := range from {
		if i == c.Me {
			if i > 0 {
				last = from[0].used(e.Reduce(dst, sum, own, last))
				sum = dst
			}
			continue
		}
		in, got := from[i].take(e, n)
		switch {
		case i == 0:
			sum, last = in, got
			continue
		case i < c.Me:
			last = e.Reduce(sum, sum, in, last, got)
		default:
			last = e.Reduce(dst, sum, in, last, got)
			sum = dst
		}
		from[i].used(last)
	}
	e.Ready(last)
}
