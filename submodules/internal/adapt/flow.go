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

// outlet is the inner segments to one rank.
//
//	send 0    send 2     …
//	   send 1    send 3
type outlet struct {
	to   levels.Rank
	sent submodules.Window
}

func (o *outlet) send(e *submodules.Emitter, src tasks.Span, after ...dag.ID) dag.ID {
	step := e.Send(o.to, src, append(after, o.sent.Before(MaxSends))...)
	o.sent.Put(MaxSends, step)
	return step
}

// sendAll sends spans to a rank, each in a message.
func sendAll(e *submodules.Emitter, to levels.Rank, spans []tasks.Span) {
	out := outlet{to: to}
	for _, s := range spans {
		out.send(e, s, submodules.None)
	}
}

func outlets(to []levels.Rank) []outlet {
	all := make([]outlet, len(to))
	for i, r := range to {
		all[i].to = r
	}
	return all
}

// fan is the inner segments to all children of a rank.
type fan struct {
	to    []outlet
	turns submodules.Turns
	sent  []dag.ID // steps of the last segment
}

// send sends a segment to all. The steps are good until the next call.
func (f *fan) send(e *submodules.Emitter, src tasks.Span, after dag.ID) []dag.ID {
	f.sent = f.sent[:0]
	for i := range f.to {
		step := f.to[i].send(e, src, after, f.turns.Before())
		f.turns.Put(step, src.Len)
		f.sent = append(f.sent, step)
	}
	return f.sent
}

// inlet is the inner segments from one rank. Whoever takes one calls used with the step that
// frees its place.
type inlet struct {
	from levels.Rank
	done submodules.Window
	buf  [MaxReceives]tasks.Span
}

func (in *inlet) recv(e *submodules.Emitter, dst tasks.Span, after dag.ID) dag.ID {
	return e.Recv(in.from, dst, after, in.done.Before(MaxReceives))
}

func (in *inlet) noteUse(step dag.ID) { in.done.Put(MaxReceives, step) }

// room is the next segment's place, of up to most bytes: the first ones make the places for all.
func (in *inlet) room(e *submodules.Emitter, most int64) tasks.Span {
	buf := &in.buf[in.done.Turn(MaxReceives)]
	if buf.Region == 0 {
		*buf = e.Scratch(most)
	}
	return *buf
}

// recvAll receives spans from a rank, each in a message.
func recvAll(e *submodules.Emitter, from levels.Rank, spans []tasks.Span) {
	in := inlet{from: from}
	for _, s := range spans {
		in.noteUse(in.recv(e, s, submodules.None))
	}
}

func inlets(from []levels.Rank) []inlet {
	all := make([]inlet, len(from))
	for i, r := range from {
		all[i].from = r
	}
	return all
}
