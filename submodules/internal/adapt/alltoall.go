package adapt

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// maxPartners bounds a rank's partners at one time in an alltoall, among the ranks of other
// nodes and among those of its own: memory and posted receives don't grow with the ranks.
const maxPartners = 16

// linearAlltoall: all exchange with all, first with the ranks of other nodes: the wire is
// slower. All take their partners in the order of a tournament's rounds. So a partner's messages
// are waited for only by ranks whose own turn it is: nothing waits in a circle.
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
	rooms      [maxPartners]tasks.Span // for arriving data that can't go to its place
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
	sent, came, comes := swap(x.e, x.c, member, maySend, mayReceive, &x.rooms[turn])
	x.sent[turn], x.came[turn] = x.e.Join(append(sent, maySend)...), comes.Settle(x.e, append(came, mayReceive)...)
}

// swap exchanges messages with a member, each way after a step. It returns the sends, and the
// steps before the arriving data can be settled. Data that can't be received in its place waits
// in room, made larger if need be.
func swap(e *submodules.Emitter, c *submodules.Call, member int, maySend, mayReceive dag.ID, room *tasks.Span) (sent, came []dag.ID, comes submodules.Parcel) {
	peer := c.Group.Ranks[member]
	goes := c.Outgoing(e, member, maySend)
	comes = c.Incoming(member, func(n int64) tasks.Span {
		if room.Len < n {
			*room = e.Scratch(n)
		}
		return room.Cut(0, n)
	})
	out, gate := outlet{to: peer}, e.Join(maySend, goes.Packed)
	for _, s := range goes.Messages {
		sent = append(sent, out.send(e, s, gate))
	}
	in := inlet{from: peer}
	for _, s := range comes.Messages {
		step := in.recv(e, s, mayReceive)
		in.noteUse(step)
		came = append(came, step)
	}
	if c.IsOver(member) {
		came = append(came, sent...)
	}
	return sent, came, comes
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
		maySend, mayReceive := submodules.None, submodules.None
		longOut, longIn := tasks.TotalLen(c.Out[member]) > c.Eager, tasks.TotalLen(c.In[member]) > c.Eager
		if longOut {
			maySend = last
		}
		in := new(tasks.Span) // a short message waits for nobody, so it has memory of its own
		if longIn {
			mayReceive, in = last, &room
		}
		sent, came, comes := swap(e, c, member, maySend, mayReceive, in)
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
