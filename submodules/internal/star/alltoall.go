package star

import (
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// alltoall: each offers every other member its data to copy, or sends it. Each begins with the
// rank behind it, so not all begin with the same one.
//
//	each   offer tell…  await… copy… notify…  await…    or   send… recv…
//
// If the call is in place, data that would be read where it lies is offered as a copy: arriving
// data overwrites it.
func alltoall(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	n := len(c.Group.Ranks)
	given := make([]giving, n)
	for distance := 1; distance < n; distance++ {
		member := c.Member(c.Me + distance)
		given[member] = giveMember(e, c, member, m)
	}
	c.KeepOwn(e)
	for distance := 1; distance < n; distance++ {
		member := c.Member(c.Me - distance)
		free := submodules.None
		if c.IsOver(member) {
			free = given[member].free
		}
		takeMember(e, c, member, m, free)
	}
	for member, r := range c.Others() {
		for _, told := range given[member].told {
			e.Await(r, told) // it has read the message
		}
	}
}

// giving is the data for a member.
type giving struct {
	told []dag.ID // the words about offered data
	free dag.ID   // its place is free after this step
}

// giveMember sends or offers a member its data.
func giveMember(e *submodules.Emitter, c *submodules.Call, member int, m Medium) (g giving) {
	outgoing := c.Outgoing
	if c.IsOver(member) && m.Reads {
		outgoing = c.OutgoingCopy
	}
	goes := outgoing(e, member)
	out := stream{peer: c.Group.Ranks[member]}
	free := []dag.ID{goes.Packed}
	for _, s := range goes.Messages {
		if m.sends(s.Len) {
			free = append(free, out.send(e, s, goes.Packed))
			continue
		}
		offered := m.Offer(e, s, goes.Packed)
		g.told = append(g.told, offered.Tell(e, out.peer))
		if !m.Reads {
			free = append(free, offered.Step)
		}
	}
	g.free = e.Join(free...)
	return g
}

// takeMember copies a member's offer, or receives it. Its place is free after a step.
func takeMember(e *submodules.Emitter, c *submodules.Call, member int, m Medium, free dag.ID) {
	in, places := stream{peer: c.Group.Ranks[member]}, c.Places(member)
	if c.IsOver(member) && slices.ContainsFunc(places, func(all []tasks.Span) bool { return m.sends(tasks.TotalLen(all)) }) {
		comes := c.Incoming(member, e.Scratch)
		var came []dag.ID
		for _, s := range comes.Messages {
			came = append(came, in.accept(e, []tasks.Span{s}, m, submodules.None))
		}
		comes.Settle(e, append(came, free)...)
		return
	}
	for _, all := range places {
		in.accept(e, all, m, free)
	}
}

// accept receives the next message, or reads it from the peer's memory, into places that are
// free after a step. It returns the step that brings the last byte.
func (s *stream) accept(e *submodules.Emitter, places []tasks.Span, m Medium, free dag.ID) dag.ID {
	n := tasks.TotalLen(places)
	if m.sends(n) && len(places) == 1 {
		return s.recv(e, places[0])
	}
	from, off := s.read(e, n, m), int64(0)
	var copies []dag.ID
	for _, to := range places {
		copies = append(copies, e.Copy(to, from.at.Cut(off, to.Len), from.ready, free))
		off += to.Len
	}
	got := e.Join(copies...)
	s.done(e, n, m, got)
	return got
}
