package adapt

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// maxPartners bounds the ranks of other nodes, and those of its own, that a rank exchanges
// with at once in an alltoall: memory and posted receives don't grow with the ranks.
const maxPartners = 16

// linearAlltoall: all exchange with all, those of other nodes first: the wire is slower.
// All take their partners in the order of a tournament's rounds. So what is to be sent to
// a partner is waited for only by those whose own turn it is: nothing waits in a circle.
//
//	time →      0      1      2      3
//	partner 0   ↔……
//	partner 1   ↔……
//	partner 16         ↔……          when partner 0 is done
func linearAlltoall(e *submodules.Emitter, c *submodules.Call) {
	if c.Alone(e) {
		return
	}
	for _, near := range []bool{false, true} {
		all := exchanges{e: e, c: c}
		for round := range trees.Rounds(len(c.Group.Ranks)) {
			if member := trees.Partner(c.Me, len(c.Group.Ranks), round); member >= 0 && c.IsNear(member) == near {
				all.with(member)
			}
		}
	}
	c.KeepOwn(e)
}

// exchanges are those with one partner after the other, some at once.
type exchanges struct {
	e          *submodules.Emitter
	c          *submodules.Call
	sent, came [maxPartners]dag.ID
	rooms      [maxPartners]tasks.Span // where what comes waits, if it can't go to its place
	n          int                     // so far
}

// with adds exchanging with a member, if there is anything to exchange.
func (x *exchanges) with(member int) {
	if len(x.c.Out[member])+len(x.c.In[member]) == 0 {
		return
	}
	turn, maySend, mayReceive := x.n%maxPartners, submodules.None, submodules.None
	if x.n >= maxPartners {
		maySend, mayReceive = x.sent[turn], x.came[turn]
	}
	x.n++
	to := x.c.Group.Ranks[member]
	goes := x.c.Outgoing(x.e, member, maySend)
	comes := x.c.Incoming(member, func(n int64) tasks.Span { return x.room(turn, n) })
	gate := x.e.Join(maySend, goes.Packed)
	var sent, done []dag.ID
	out := outlet{to: to}
	for _, s := range goes.Messages {
		sent = append(sent, out.send(x.e, s, gate))
	}
	in := inlet{from: to}
	for _, s := range comes.Messages {
		step := in.recv(x.e, s, mayReceive)
		in.used(step)
		done = append(done, step)
	}
	if x.c.IsOver(member) {
		done = append(done, sent...)
	}
	x.sent[turn], x.came[turn] = x.e.Join(append(sent, maySend)...), comes.Settle(x.e, append(done, mayReceive)...)
}

// room is the memory of a turn, at least n bytes.
func (x *exchanges) room(turn int, n int64) tasks.Span {
	if x.rooms[turn].Len < n {
		x.rooms[turn] = x.e.Scratch(n)
	}
	return x.rooms[turn].Cut(0, n)
}

// pairwiseAlltoall: long messages go to one partner after the other, in the order of a
// tournament's rounds. Short ones, up to the plan's eager bytes, wait for none of them: both
// ends know how long a message is.
//
//	time →    0       1       2
//	long      ↔ 1     ↔ 2     ↔ 3
//	short     ↔ 4 5 6
func pairwiseAlltoall(e *submodules.Emitter, c *submodules.Call) {
	if c.Alone(e) {
		return
	}
	last, room := submodules.None, tasks.Span{}
	for round := range trees.Rounds(len(c.Group.Ranks)) {
		member := trees.Partner(c.Me, len(c.Group.Ranks), round)
		if member < 0 || len(c.Out[member])+len(c.In[member]) == 0 {
			continue
		}
		to := c.Group.Ranks[member]
		maySend, mayReceive := submodules.None, submodules.None
		longOut, longIn := length(c.Out[member]) > c.Eager, length(c.In[member]) > c.Eager
		if longOut {
			maySend = last
		}
		if longIn {
			mayReceive = last
		}
		goes := c.Outgoing(e, member, maySend)
		comes := c.Incoming(member, func(n int64) tasks.Span {
			if !longIn {
				return e.Scratch(n)
			}
			if room.Len < n {
				room = e.Scratch(n)
			}
			return room.Cut(0, n)
		})
		out, in := outlet{to: to}, inlet{from: to}
		gate := e.Join(maySend, goes.Packed)
		var sent, came []dag.ID
		for _, s := range goes.Messages {
			sent = append(sent, out.send(e, s, gate))
		}
		for _, s := range comes.Messages {
			step := in.recv(e, s, mayReceive)
			in.used(step)
			came = append(came, step)
		}
		if c.IsOver(member) {
			came = append(came, sent...)
		}
		done := comes.Settle(e, append(came, mayReceive)...)
		after := []dag.ID{last}
		if longOut {
			after = append(after, sent...)
		}
		if longIn {
			after = append(after, done)
		}
		last = e.Join(after...)
	}
	c.KeepOwn(e)
}

func length(spans []tasks.Span) (n int64) {
	for _, s := range spans {
		n += s.Len
	}
	return n
}
