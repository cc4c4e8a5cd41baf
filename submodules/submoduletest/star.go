package submoduletest

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// star does the tasks that the submodule under test lacks: everybody talks to the leader. It is
// the simplest submodule for any group, leader and operation.
type star struct{}

var _ submodules.Submodule = star{}

func (star) Name() string            { return "star" }
func (star) Doc() string             { return "everybody talks to the leader" }
func (star) Reach() submodules.Reach { return submodules.Anywhere }

// exchanges are the operations of blocks with two ends.
var exchanges = tasks.CollectivesWith(tasks.Collective.Exchanges)

func (star) Algorithms() []submodules.Algorithm {
	traffic := submodules.Alike(submodules.StarTree, submodules.Others, submodules.Others, tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter, tasks.Prefix).
		And(0, submodules.Others, submodules.Others, tasks.Scan, tasks.Exscan).
		And(submodules.AllAtOnce, 0, submodules.Others, append([]tasks.Collective{tasks.Allgather, tasks.ReduceScatter}, exchanges...)...).
		And(0, 0, submodules.Others, tasks.Allreduce)
	return []submodules.Algorithm{{
		Traits: submodules.Traits{Traffic: traffic},
		Name:   "star", Doc: "one round", Source: "none",
		Ops: append([]tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter, tasks.Allgather, tasks.ReduceScatter, tasks.Allreduce, tasks.Scan, tasks.Exscan, tasks.Prefix}, exchanges...),
	}}
}

func (s star) Lower(e *submodules.Emitter, c *submodules.Call) error {
	if c.Alone(e) {
		return nil
	}
	switch leads := c.Me == c.Group.Leader; {
	case c.Kind.Op == tasks.Bcast && leads:
		for _, r := range c.Others() {
			e.Send(r, c.Dst)
		}
	case c.Kind.Op == tasks.Bcast:
		e.Recv(c.Group.Lead(), c.Dst)
	case c.Kind.Op == tasks.Reduce && leads:
		s.combine(e, c)
	case c.Kind.Op == tasks.Reduce:
		e.Send(c.Group.Lead(), c.Src)
	case c.Kind.Op == tasks.Gather && !leads:
		s.giveAll(e, c.Group.Lead(), c.Held)
	case c.Kind.Op == tasks.Gather, c.Kind.Op == tasks.Allgather:
		c.Keep(e)
		for i, r := range c.Others() {
			for _, part := range c.Parts[i] {
				e.Recv(r, part)
			}
			if c.Kind.Op == tasks.Allgather {
				s.giveAll(e, r, c.Held)
			}
		}
	case c.Kind.Op == tasks.Scatter && !leads:
		for _, part := range c.Held {
			e.Recv(c.Group.Lead(), part)
		}
	case c.Kind.Op == tasks.Scatter:
		c.Keep(e)
		for i, r := range c.Others() {
			s.giveAll(e, r, c.Parts[i])
		}
	case c.Kind.Op == tasks.Allreduce:
		var sent []dag.ID
		for _, r := range c.Others() {
			sent = append(sent, e.Send(r, c.Src))
		}
		s.combine(e, c, sent...)
	case c.Kind.Op.Exchanges():
		s.exchange(e, c)
	case c.Kind.Op == tasks.ReduceScatter:
		s.combineParts(e, c)
	case c.Kind.Op == tasks.Prefix && leads:
		for _, r := range c.Others() {
			e.Send(r, c.Src)
		}
		c.Precede(e, c.Src, 0, c.Src.Len)
	case c.Kind.Op == tasks.Prefix:
		in := e.Scratch(c.Src.Len)
		c.Precede(e, in, 0, c.Src.Len, e.Recv(c.Group.Lead(), in))
	case c.Kind.Op.Scans():
		s.scan(e, c)
	default:
		return fmt.Errorf("%v: %w", c.Kind.Op, submodules.ErrUnsupported)
	}
	return nil
}

func (star) giveAll(e *submodules.Emitter, to levels.Rank, parts []tasks.Span) {
	for _, part := range parts {
		e.Send(to, part)
	}
}

// combineParts is a reduction of each member's part to this member.
func (s star) combineParts(e *submodules.Emitter, c *submodules.Call) {
	for i, r := range c.Others() {
		s.giveAll(e, r, c.Parts[i])
	}
	for j, held := range c.Held {
		one := *c
		one.Src, one.Dst = c.Parts[c.Me][j], held
		s.combine(e, &one)
	}
}

// exchange sends every piece in a message, and receives all of them in scratch.
func (star) exchange(e *submodules.Emitter, c *submodules.Call) {
	c.KeepOwn(e)
	var all []dag.ID
	in := make([][]tasks.Span, len(c.In))
	for i, r := range c.Others() {
		goes := c.Outgoing(e, i)
		for _, s := range goes.Messages {
			all = append(all, e.Send(r, s, goes.Packed))
		}
		for _, places := range c.Places(i) {
			room := e.Scratch(tasks.TotalLen(places))
			all = append(all, e.Recv(r, room))
			for _, s := range places {
				in[i] = append(in[i], room.Cut(0, s.Len))
				room = room.Cut(s.Len, room.Len-s.Len)
			}
		}
	}
	over := e.Join(all...)
	for i := range c.Others() {
		for k, s := range c.In[i] {
			e.Copy(s, in[i][k], over)
		}
	}
}

// scan has all ranks send to all behind them.
func (star) scan(e *submodules.Emitter, c *submodules.Call) {
	var before tasks.Span
	last := submodules.None
	var sent []dag.ID
	for i, r := range c.Others() {
		if i > c.Me {
			sent = append(sent, e.Send(r, c.Src))
			continue
		}
		in := e.Scratch(c.Src.Len)
		got := e.Recv(r, in)
		if before.Region == 0 {
			before, last = in, got
		} else {
			last = e.Reduce(before, before, in, last, got)
		}
	}
	after := append(sent, last)
	switch through := c.Scan.Through; {
	case through.Region == 0:
	case c.Me > 0:
		after = append(after, e.Reduce(through, before, c.Src, after...))
	case through != c.Src:
		e.Copy(through, c.Src, after...)
	}
	if c.Me > 0 && c.Scan.Below.Region != 0 {
		e.Copy(c.Scan.Below, before, after...)
	}
}

// combine receives all inputs and combines them in the order of ranks; the last step comes after
// those given. In between it works in scratch: Dst may be Src, and ranks below the leader come
// before it.
func (star) combine(e *submodules.Emitter, c *submodules.Call, before ...dag.ID) {
	n := len(c.Group.Ranks)
	in := make([]tasks.Span, n)
	got := make([]dag.ID, n)
	in[c.Me], got[c.Me] = c.Src, submodules.None
	for i, r := range c.Others() {
		in[i] = e.Scratch(c.Src.Len)
		got[i] = e.Recv(r, in[i])
	}
	sum, last, between := in[0], got[0], e.Scratch(c.Src.Len)
	for i := 1; i < n; i++ {
		to, after := between, []dag.ID{last, got[i]}
		if i == n-1 {
			to, after = c.Dst, append(after, before...)
		}
		last = e.Reduce(to, sum, in[i], after...)
		sum = to
	}
}
