package submodules

import (
	"iter"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Call is one task to be lowered on one rank.
type Call struct {
	tasks.Task
	Me        int // this rank's index in Group.Ranks
	Algorithm string
	Inner     int64 // bytes, a multiple of Elem; 0: the segment in one piece
	Elem      int64 // bytes of an element; 1 when there is no data
	N         int   // the algorithm's number; 0: its default
	Eager     int64 // see [tasks.Plan]

	// Of a task that gathers or scatters, by index in the group: the members' parts on this
	// rank, as spans of equal lengths on all ranks, cut by Inner already. A Gather puts them
	// there at the leader, an Allgather everywhere. A Scatter takes them from there at the
	// leader, a ReduceScatter everywhere. A part that isn't stored on this rank has lengths and
	// no region.
	Parts [][]tasks.Span
	// Held is this rank's own part when the task begins; of a Scatter or ReduceScatter when it
	// ends. It is at its place in Parts, or apart from all of them.
	Held []tasks.Span
	// Scan is the places of the values of a Scan, Exscan or Prefix. A Scan and an Exscan take
	// Src and leave their results there. A Prefix puts the leader's Src before the values there.
	Scan tasks.Scanned
	// Out and In are an Alltoall's pieces on this rank, by index in the group: those for each
	// member, and those from each. A pair of members has as many pieces of equal lengths on both
	// ends. In place Out and In are the same memory: the pieces from a member lie over those for
	// it.
	Out, In [][]tasks.Span
	// On is the topology of the communicator.
	On *levels.Topology
	// Full reports of an Allgather that all parts lie on this rank already. It is the root of a
	// Bcast then, and its buffer must be left alone even when the call fails.
	Full bool
}

// Shards divides a span into as many shards as the group has ranks, each cut by
// Inner; empty ones have no piece.
func (c *Call) Shards(s tasks.Span) [][]tasks.Span {
	all := make([][]tasks.Span, len(c.Group.Ranks))
	for i := range all {
		if shard := s.Shard(i, len(all), c.Elem); shard.Len > 0 {
			all[i] = c.cut([]tasks.Span{shard})
		}
	}
	return all
}

// cut divides spans by the inner segment.
func (c *Call) cut(all []tasks.Span) []tasks.Span {
	if c.Inner <= 0 {
		return all
	}
	var pieces []tasks.Span
	for _, s := range all {
		for off := int64(0); off < s.Len; off += c.Inner {
			pieces = append(pieces, s.Cut(off, min(c.Inner, s.Len-off)))
		}
	}
	return pieces
}

// Keep adds copying this rank's own part to its place in Parts; in a Scatter or ReduceScatter
// from its place there to Held. It adds nothing if they are the same.
func (c *Call) Keep(e *Emitter, after ...dag.ID) (steps []dag.ID) {
	for i, held := range c.Held {
		dst, src := c.Parts[c.Me][i], held
		if c.Kind.Op.Scatters() {
			dst, src = src, dst
		}
		if dst != src {
			steps = append(steps, e.Copy(dst, src, after...))
		}
	}
	return steps
}

// Alone reports whether this rank is the only one of its group, and then adds its work: a copy of its data
// to their place.
func (c *Call) Alone(e *Emitter) bool {
	if len(c.Group.Ranks) > 1 {
		return false
	}
	switch {
	case c.Out != nil:
		c.KeepOwn(e)
	case c.Parts != nil:
		c.Keep(e)
	case c.Src != c.Dst:
		e.Copy(c.Dst, c.Src)
	}
	return true
}

// Part is a member's part on this rank; its own as it came.
func (c *Call) Part(i int) []tasks.Span {
	if i == c.Me {
		return c.Held
	}
	return c.Parts[i]
}

// Pieces yields offset and length of the inner segments in order; a message
// without bytes is one empty piece.
func (c *Call) Pieces() iter.Seq2[int64, int64] {
	return func(yield func(off, n int64) bool) {
		step := c.Inner
		if step <= 0 {
			step = c.Dst.Len
		}
		for off := int64(0); ; off += step {
			n := min(step, c.Dst.Len-off)
			if !yield(off, n) || off+step >= c.Dst.Len {
				return
			}
		}
	}
}

// Others yields the ranks of the group but this one, ascending.
func (c *Call) Others() iter.Seq2[int, levels.Rank] {
	return func(yield func(int, levels.Rank) bool) {
		for i, r := range c.Group.Ranks {
			if i != c.Me && !yield(i, r) {
				return
			}
		}
	}
}

// Member returns the index of a rank of the group, counted in a circle: i may be below 0,
// or beyond the last one.
func (c *Call) Member(i int) int {
	n := len(c.Group.Ranks)
	return (i%n + n) % n
}

// Seat returns this rank's place in a tree rooted at the leader: places are counted in a
// circle from the leader on.
func (c *Call) Seat() int { return c.Member(c.Me - c.Group.Leader) }

// RankAt returns the rank at a place of such a tree.
func (c *Call) RankAt(seat int) levels.Rank { return c.Group.Ranks[c.Member(seat+c.Group.Leader)] }

// IsLast reports whether this rank is the last one of its group.
func (c *Call) IsLast() bool { return c.Me == len(c.Group.Ranks)-1 }
