// Package star lowers tasks of ranks with shared memory: every rank speaks with the leader, or
// with all others. The submodules built on it differ in how a rank offers its data: in a slot,
// in place, or in messages. It emits steps only.
package star

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// lowerings are the functions for its tasks.
var lowerings = []struct {
	op    tasks.Collective
	lower func(e *submodules.Emitter, c *submodules.Call, m Medium)
}{
	{tasks.Bcast, bcast},
	{tasks.Reduce, reduce},
	{tasks.Gather, gather},
	{tasks.Scatter, scatter},
	{tasks.Allgather, allgather},
	{tasks.ReduceScatter, reduceScatter},
	{tasks.Allreduce, allreduce},
	{tasks.Alltoall, alltoall},
	{tasks.Neighbors, alltoall},
	{tasks.Scan, scan},
	{tasks.Exscan, scan},
	{tasks.Prefix, prefix},
}

// Operations lists the tasks of [Lower].
func Operations() []tasks.Collective {
	all := make([]tasks.Collective, len(lowerings))
	for i, l := range lowerings {
		all[i] = l.op
	}
	return all
}

// Traffic returns the traffic of the operations of [Lower] with a schedule. The number of
// messages follows from the medium.
func Traffic() submodules.Traffics {
	return submodules.Alike(submodules.StarTree, 0, 0, tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter, tasks.Prefix).
		And(submodules.AllAtOnce, 0, 0, tasks.Allgather, tasks.ReduceScatter, tasks.Alltoall, tasks.Neighbors)
}

// Lower emits one task by a medium. Of other operations than [Operations] the error
// wraps [submodules.ErrUnsupported].
func Lower(e *submodules.Emitter, c *submodules.Call, m Medium) error {
	for _, l := range lowerings {
		if l.op == c.Kind.Op {
			l.lower(e, c, m)
			return nil
		}
	}
	return fmt.Errorf("%v: %w", c.Kind.Op, submodules.ErrUnsupported)
}

// Offer makes a rank's data readable after the steps named.
type Offer func(e *submodules.Emitter, src tasks.Span, after ...dag.ID) Offered

// Offered is data that a rank has made readable. Peers may be told of it after Step.
type Offered struct {
	Span, Backup tasks.Span
	Step         dag.ID
}

// Tell adds telling a peer the place of the data.
func (o Offered) Tell(e *submodules.Emitter, to levels.Rank) dag.ID {
	return e.Expose(to, o.Span, o.Backup, o.Step)
}

// Medium is how a rank lets others have its data.
type Medium struct {
	Offer  Offer // for them to read
	Reads  bool  // they read it in place, until they say so
	Inline int64 // data of at most so many bytes, and at least one, is sent instead
}

// sends tells whether a piece of n bytes goes in a message.
func (m Medium) sends(n int64) bool { return 0 < n && n <= m.Inline }

// InSlot offers data by a copy into a slot of the rank's own.
func InSlot(e *submodules.Emitter, src tasks.Span, after ...dag.ID) Offered {
	slot := e.Slot(src.Len)
	return Offered{Span: slot, Step: e.Copy(slot, src, after...)}
}

// InPlace offers data in its place, for as long as the task runs.
func InPlace(e *submodules.Emitter, src tasks.Span, after ...dag.ID) Offered {
	step, backup := e.Share(src, after...)
	return Offered{Span: src, Backup: backup, Step: step}
}

// bcast: the leader offers each piece, the members copy it; or it sends the piece.
//
//	leader   offer tell…          await…    or   send…
//	member         await copy notify             recv
func bcast(e *submodules.Emitter, c *submodules.Call, m Medium) {
	lead := c.Group.Lead()
	if c.Me == c.Group.Leader {
		to := streams(c)
		for off, n := range c.Pieces() {
			shareAndWait(e, c, to, c.Dst.Cut(off, n), m)
		}
		e.ReadyAtStart()
		return
	}
	in := stream{peer: lead}
	for off, n := range c.Pieces() {
		if m.sends(n) {
			e.Ready(in.recv(e, c.Dst.Cut(off, n)))
			continue
		}
		told := e.Await(lead)
		if n == 0 {
			return // nothing to copy: the word itself is the message
		}
		out := e.Copy(c.Dst.Cut(off, n), submodules.Exposed(told, 0, n), told)
		e.Notify(lead, tasks.Span{}, out)
		e.Ready(out)
	}
}

// reduce: each member offers its piece, and the leader combines its own with them, straight from
// their memory. Or they send theirs, and the leader combines all in the order of ranks.
//
//	member   offer tell             await    or   send
//	leader         await reduce notify            recv… reduce…
func reduce(e *submodules.Emitter, c *submodules.Call, m Medium) {
	lead := c.Group.Lead()
	if c.Me == c.Group.Leader {
		reduceLeader(e, c, m)
		return
	}
	out := stream{peer: lead}
	for off, n := range c.Pieces() {
		if m.sends(n) {
			out.send(e, c.Src.Cut(off, n), submodules.None)
			continue
		}
		if n == 0 {
			e.Notify(lead, tasks.Span{})
			return
		}
		e.Await(lead, m.Offer(e, c.Src.Cut(off, n)).Tell(e, lead))
	}
}

func reduceLeader(e *submodules.Emitter, c *submodules.Call, m Medium) {
	if c.Alone(e) {
		return
	}
	from := streams(c)
	for off, n := range c.Pieces() {
		if m.sends(n) {
			fold(e, c, from, off, n, m)
			continue
		}
		sum, dst := c.Src.Cut(off, n), c.Dst.Cut(off, n)
		last := submodules.None
		for _, r := range c.Others() {
			told := e.Await(r)
			if n == 0 {
				continue
			}
			last = e.Reduce(dst, sum, submodules.Exposed(told, 0, n), last, told)
			e.Notify(r, tasks.Span{}, last)
			sum = dst
		}
		e.Ready(last)
	}
}

// Slices: every rank combines one slice of all ranks' data in its own Dst; the
// leader then collects the slices. All ranks share the work of the reduction; the
// order of operands starts with each slice's owner.
//
//	rank j   offer tell…  await… reduce slice j  notify…   await…
//	leader                                 …     copy slices notify
func Slices(e *submodules.Emitter, c *submodules.Call, offer Offer) {
	if len(c.Group.Ranks) == 1 || c.Src.Len < int64(len(c.Group.Ranks))*c.Elem {
		reduce(e, c, Medium{Offer: offer})
		return
	}
	lead, atLead := c.Group.Lead(), c.Me == c.Group.Leader
	mine := offer(e, c.Src)
	for _, r := range c.Others() {
		mine.Tell(e, r)
	}
	told := make([]dag.ID, len(c.Group.Ranks))
	for i, r := range c.Others() {
		told[i] = e.Await(r)
	}
	off, n := slice(c, c.Me)
	sum, dst, last := c.Src.Cut(off, n), c.Dst.Cut(off, n), mine.Step
	for i := range c.Others() {
		last = e.Reduce(dst, sum, submodules.Exposed(told[i], off, n), last, told[i])
		sum = dst
	}
	// The second word to each: I have read yours; to the leader: here is my slice.
	for _, r := range c.Others() {
		if r == lead {
			offer(e, dst, last).Tell(e, r)
		} else {
			e.Notify(r, tasks.Span{}, last)
		}
	}
	for i, r := range c.Others() {
		read := e.Await(r, mine.Step)
		if atLead {
			off, n := slice(c, i)
			got := e.Copy(c.Dst.Cut(off, n), submodules.Exposed(read, 0, n), read)
			e.Notify(r, tasks.Span{}, got)
			e.Ready(got)
		}
	}
	if atLead {
		e.Ready(last)
	} else {
		e.Await(lead, last)
	}
}

// slice is the part of the segment for the i-th rank of the group to combine.
func slice(c *submodules.Call, i int) (off, n int64) {
	ranks, elems := int64(len(c.Group.Ranks)), c.Src.Len/c.Elem
	off = elems * int64(i) / ranks * c.Elem
	return off, elems*int64(i+1)/ranks*c.Elem - off
}
