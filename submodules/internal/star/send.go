package star

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ahead is the number of pieces on their way between two ranks: one being used, one arriving,
// and one whose receiver is ready.
const ahead = 3

// stream is the pieces from one rank to another in messages. Piece i waits until the place of
// piece i−ahead is free. So neither the bytes on their way nor the memory grow with the segment.
type stream struct {
	peer  levels.Rank
	free  submodules.Window // the steps that free the places again
	place [ahead]tasks.Span
}

// noteUse records that step frees this piece's place. It returns step.
func (s *stream) noteUse(step dag.ID) dag.ID {
	s.free.Put(ahead, step)
	return step
}

func (s *stream) send(e *submodules.Emitter, src tasks.Span, after dag.ID) dag.ID {
	return s.noteUse(e.Send(s.peer, src, after, s.free.Before(ahead)))
}

func (s *stream) recv(e *submodules.Emitter, dst tasks.Span) dag.ID {
	return s.noteUse(e.Recv(s.peer, dst, s.free.Before(ahead)))
}

// operand is one rank's piece of a combination, ready after a step.
type operand struct {
	at    tasks.Span
	ready dag.ID
}

// read is the next piece: in scratch if it is sent, else in the peer's memory. It stays there
// until a call of done.
func (s *stream) read(e *submodules.Emitter, n int64, m Medium) operand {
	if !m.sends(n) {
		told := e.Await(s.peer)
		return operand{submodules.Exposed(told, 0, n), told}
	}
	at := &s.place[s.free.Turn(ahead)]
	if at.Len < n {
		*at = e.Scratch(n)
	}
	to := at.Cut(0, n)
	return operand{to, e.Recv(s.peer, to, s.free.Before(ahead))}
}

// done ends the use of a piece of n bytes after the steps named.
func (s *stream) done(e *submodules.Emitter, n int64, m Medium, after ...dag.ID) {
	if m.sends(n) {
		s.noteUse(e.Join(after...))
	} else {
		e.Notify(s.peer, tasks.Span{}, after...)
	}
}

// streams are those with the other ranks of the group.
func streams(c *submodules.Call) []stream {
	all := make([]stream, len(c.Group.Ranks))
	for i, r := range c.Others() {
		all[i].peer = r
	}
	return all
}

// share sends src to all others, or offers it and tells them. It returns the offer, or the steps of
// the sends: src may be written over after them, or after the step of an offer that nobody reads in place.
func share(e *submodules.Emitter, c *submodules.Call, to []stream, src tasks.Span, m Medium) (offered Offered, sends []dag.ID) {
	if m.sends(src.Len) {
		for i := range c.Others() {
			sends = append(sends, to[i].send(e, src, submodules.None))
		}
		return offered, sends
	}
	offered = m.Offer(e, src)
	for _, r := range c.Others() {
		offered.Tell(e, r)
	}
	return offered, nil
}

// shareAndWait is [share], and waits until the others have read an offer. If there are no bytes
// it only tells them.
func shareAndWait(e *submodules.Emitter, c *submodules.Call, to []stream, src tasks.Span, m Medium) {
	if src.Len == 0 {
		notifyOthers(e, c)
		return
	}
	offered, _ := share(e, c, to, src, m)
	if m.sends(src.Len) {
		return
	}
	for _, r := range c.Others() {
		e.Await(r, offered.Step)
	}
}

// notifyOthers tells all others of this rank's coming.
func notifyOthers(e *submodules.Emitter, c *submodules.Call) {
	for _, r := range c.Others() {
		e.Notify(r, tasks.Span{})
	}
}

// fold receives the others' pieces and combines them with this rank's in the order of ranks.
// Those of the ranks before it are combined in their own places: Dst may hold this rank's.
func fold(e *submodules.Emitter, c *submodules.Call, from []stream, off, n int64, m Medium) {
	own, dst := c.Src.Cut(off, n), c.Dst.Cut(off, n)
	sum, last := own, submodules.None
	for i := range from {
		if i == c.Me {
			if i > 0 {
				last = from[0].noteUse(e.Reduce(dst, sum, own, last))
				sum = dst
			}
			continue
		}
		in := from[i].read(e, n, m)
		switch {
		case i == 0:
			sum, last = in.at, in.ready
			continue
		case i < c.Me:
			last = e.Reduce(sum, sum, in.at, last, in.ready)
		default:
			last = e.Reduce(dst, sum, in.at, last, in.ready)
			sum = dst
		}
		from[i].noteUse(last)
	}
	e.Ready(last)
}
