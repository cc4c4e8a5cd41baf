package adapt

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// How many inner segments are in flight between two ranks: coll/adapt's
// bcast_max_recv_requests and reduce_max_recv_requests, bcast_max_send_requests
// and reduce_max_send_requests. Three receives keep one ready while one arrives
// and one is used; two sends keep the link busy while one completes.
const (
	MaxReceives = 3 // per parent of a bcast, per child of a reduction
	MaxSends    = 2 // per child of a bcast, to the parent of a reduction
)

// window is the last few steps of a kind; what comes next waits for the one that
// is size steps back.
type window struct {
	last [max(MaxReceives, MaxSends)]dag.ID
	n    int
}

func (w *window) before(size int) dag.ID {
	if w.n < size {
		return submodules.None
	}
	return w.last[w.n%size]
}

func (w *window) put(size int, step dag.ID) {
	w.last[w.n%size] = step
	w.n++
}

// outlet is the inner segments that go to one rank.
//
//	send 0    send 2     …
//	   send 1    send 3
type outlet struct {
	to   levels.Rank
	sent window
}

func (o *outlet) send(e *submodules.Emitter, src tasks.Span, after dag.ID) dag.ID {
	step := e.Send(o.to, src, after, o.sent.before(MaxSends))
	o.sent.put(MaxSends, step)
	return step
}

func outlets(to []levels.Rank) []outlet {
	all := make([]outlet, len(to))
	for i, r := range to {
		all[i].to = r
	}
	return all
}

// inlet is the inner segments that come from one rank. Whoever takes one says
// with used when its place is free again.
type inlet struct {
	from levels.Rank
	done window
	buf  [MaxReceives]tasks.Span
}

func (in *inlet) recv(e *submodules.Emitter, dst tasks.Span, after dag.ID) dag.ID {
	return e.Recv(in.from, dst, after, in.done.before(MaxReceives))
}

func (in *inlet) used(step dag.ID) { in.done.put(MaxReceives, step) }

// room is where the next segment goes, of up to most bytes: the first ones make the
// places for all.
func (in *inlet) room(e *submodules.Emitter, most int64) tasks.Span {
	buf := &in.buf[in.done.n%MaxReceives]
	if buf.Region == 0 {
		*buf = e.Scratch(most)
	}
	return *buf
}

func inlets(from []levels.Rank) []inlet {
	all := make([]inlet, len(from))
	for i, r := range from {
		all[i].from = r
	}
	return all
}
