package star

import (
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// alltoall: each offers every other what that is to get, who copies it; or it sends that.
// Each begins with the rank behind it, so that not all begin with the same one.
//
//	each   offer tell…  await… copy… notify…  await…    or   send… recv…
//
// In place, data that would be read where it lies is offered as a copy: arriving data overwrites it.
func alltoall(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	n := len(c.Group.Ranks)
	given := make([]giving, n)
	for distance := 1; distance < n; distance++ {
		member := (c.Me + distance) % n
		given[member] = giveMember(e, c, member, m)
	}
	c.KeepOwn(e)
	for distance := 1; distance < n; distance++ {
		member := (c.Me - distance + n) % n
		free := submodules.None
		if c.IsOver(member) {
			free = given[member].free
		}
		takeMember(e, c, member, m, free)
	}
	for member, r := range c.Others() {
		for _, told := range given[member].told {
			e.Await(r, told) // it has read that message
		}
	}
}

// giving is what a member gets.
type giving struct {
	told []dag.ID // the words of what is offered
	free dag.ID   // the step after which its place is free
}

// giveMember lets a member have what it is to get.
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

// takeMember copies what a member offers, or receives it. Its place is free after a step.
func takeMember(e *submodules.Emitter, c *submodules.Call, member int, m Medium, free dag.ID) {
	in, places := stream{peer: c.Group.Ranks[member]}, c.Places(member)
	if c.IsOver(member) && slices.ContainsFunc(places, func(all []tasks.Span) bool { return m.sends(length(all)) }) {
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

// accept receives the next message, or reads it where it is offered, into places that are
// free after a step. It returns the step after which it is there.
func (s *stream) accept(e *submodules.Emitter, places []tasks.Span, m Medium, free dag.ID) dag.ID {
	n := length(places)
	var from tasks.Span
	var told dag.ID
	switch {
	case m.sends(n) && len(places) == 1:
		return s.recv(e, places[0])
	case m.sends(n):
		from, told = s.take(e, n)
	default:
		told = e.Await(s.peer)
		from = submodules.Exposed(told, 0, n)
	}
	var copies []dag.ID
	for _, to := range places {
		copies = append(copies, e.Copy(to, tasks.Span{Region: from.Region, Ref: from.Ref, Off: from.Off, Len: to.Len}, told, free))
		from.Off += to.Len
	}
	got := e.Join(copies...)
	if m.sends(n) {
		return s.used(got)
	}
	e.Notify(s.peer, tasks.Span{}, got)
	return got
}

func length(spans []tasks.Span) (n int64) {
	for _, s := range spans {
		n += s.Len
	}
	return n
}
