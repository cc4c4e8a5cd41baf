package tasks

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// store is the place of a segment's data on a rank.
type store struct {
	region Region
	off    int64 // bytes, of the segment of the first block, of the only one or of the vector
	holds  holding
}

// span is n bytes from the store's beginning.
func (s store) span(n int64) Span { return Span{Region: s.region, Off: s.off, Len: n} }

// holding is the part of a request with blocks in a store.
type holding uint8

const (
	oneBlock   holding = iota // this rank's own, or the vector
	allBlocks                 // at their places
	someBlocks                // those of blocks.stored, one after the other

	inputPairs  // of an exchange: all blocks from this rank
	resultPairs // all blocks for it
	givenPairs  // those of exchange.given
	gottenPairs // those of exchange.gotten
	lanePairs   // those of exchange.given; the blocks for this rank are in the receive buffer
)

func (b *blocks) layScratch() (bytes int64) {
	switch r := b.Request; {
	case r.Blocks():
		b.stored = b.stores()
		b.starts = []int64{0}
		for _, rank := range b.stored {
			_, n := r.Block(rank)
			bytes += min(n, b.elems*int64(r.Type.Size()))
			b.starts = append(b.starts, bytes)
		}
	case r.Coll.HasData():
		vectors := r.Coll.row().Values
		if r.Receives(b.Rank) {
			vectors-- // the one in the receive buffer
		}
		bytes = int64(vectors) * b.elems * int64(r.Type.Size())
	}
	return bytes
}

// stores lists the ranks whose blocks this rank keeps in scratch.
func (b *blocks) stores() []levels.Rank {
	tasks := make([]int, 0, len(b.Phases)) // phases with one of this rank
	reduces := false
	for at, ph := range b.Phases {
		if b.roles[at].group != nil {
			tasks = append(tasks, at)
			reduces = reduces || ph.Kind.Op == Reduce
		}
	}
	r := b.Request
	switch {
	case len(tasks) < 2 && !reduces, r.GivesBlocks() && r.Receives(b.Rank), r.Rooted() && b.Rank == r.Root:
		return nil // a buffer of the caller's holds them
	case reduces:
		return b.everyone()
	case r.GivesBlocks():
		return b.On.Under(b.Rank, b.Phases[tasks[len(tasks)-1]].Level)
	}
	return b.On.Under(b.Rank, b.Phases[tasks[0]].Level)
}

// locate sets the places of a task's data before and after it. The first task of a segment on a
// rank reads the caller's input. All others work on the segment in the rank's receive buffer, or
// in scratch if there is none. The last task of a scatter fills the receive buffer.
func (b *blocks) locate(t *Task, first bool) {
	r, at := b.Request, int(t.Phase)
	from := int64(t.Segment) * b.elems
	size := int64(r.Type.Size())
	input := store{region: r.Input(b.Rank), off: from * size}
	if r.TakesBlocks() || r.GivesBlocks() && input.region == Recv {
		input.holds = allBlocks
	}
	work := input
	switch {
	case b.Partial > 0 && (r.Blocks() || !r.Receives(b.Rank)):
		work = store{Scratch, b.slot(int(t.Segment)%b.slots(), b.slotBytes), oneBlock}
		if r.Blocks() {
			work.holds = someBlocks
		}
	case r.GivesBlocks() && r.Receives(b.Rank):
		work = store{Recv, input.off, allBlocks}
	case !r.Blocks() && r.Receives(b.Rank):
		work.region = Recv
	}
	t.in, t.out = work, work
	if first {
		t.in = input
	}
	if r.TakesBlocks() && t.Kind.Op.Scatters() && b.final(at) && r.Receives(b.Rank) {
		t.out = store{Recv, input.off, oneBlock}
	}
	t.Src, t.Dst = t.in.span(b.length(t)), t.out.span(b.length(t))
	if b.acrossLanes(b.Phases[at]) { // a lane's shard
		lane, lanes := t.Group.Index, b.roles[at].shards
		t.Src, t.Dst = t.Src.Shard(lane, lanes, size), t.Dst.Shard(lane, lanes, size)
	}
}

// Parts returns the division of a gathering or scattering task's data on this rank. parts[i] is
// the place of member i's part on this rank. held is the place of this rank's own part: its
// input, or its result. Corresponding spans have equal lengths on all ranks. If only the leader
// stores the parts, those of others have a length and no region.
//
// Of a request with blocks, a part is the blocks of the ranks that a member speaks for, as
// segments cut through all blocks; otherwise it is a shard of the segment.
//
//	blocks       0     1     2     3         member 0 speaks for ranks 0, 1
//	segment 1   -xx-  -xx-  -yy-  -yy-       member 1 speaks for ranks 2, 3
func (g *Graph) Parts(t *Task) (parts [][]Span, held []Span) {
	all, own := t.out, t.in
	if t.Kind.Op.Scatters() {
		all, own = t.in, t.out
	}
	me := t.Group.Pos(g.Rank)
	if t.Kind.Op.IsRooted() && me != t.Group.Leader {
		all = store{}
	}
	parts = make([][]Span, len(t.Group.Ranks))
	for i := range parts {
		parts[i] = g.part(t, all, i)
	}
	if all == own {
		return parts, parts[me]
	}
	return parts, g.part(t, own, me)
}

// Divided reports whether a task's data is divided: [Graph.Parts] tells how, and of an
// alltoall [Graph.Exchange].
func (g *Graph) Divided(t *Task) bool { return t.Kind.Op.HasBlocks() }

// part is the place of a member's part in a store.
func (g *Graph) part(t *Task, st store, member int) []Span {
	role := &g.roles[t.Phase]
	if g.Request.Exchanges() {
		var all []Span
		for _, rank := range role.speaks[member] {
			all = append(all, g.exchange.pairsOf(t, st, rank, t.Kind.Op == Scatter)...)
		}
		return all
	}
	if role.speaks != nil {
		return g.blocks.runs(t, st, role.speaks[member])
	}
	s := st.span(t.Dst.Len).Shard(member, role.shards, int64(g.Request.Type.Size()))
	if s.Len == 0 {
		return nil
	}
	return []Span{s}
}

// Runs is the places of all blocks' parts of a Bcast or Reduce task, before and after it, of a
// request with blocks: spans of equal lengths on all ranks.
func (g *Graph) Runs(t *Task) (src, dst []Span) {
	all := g.everyone()
	src = g.blocks.runs(t, t.in, all)
	if t.in == t.out {
		return src, src
	}
	return src, g.blocks.runs(t, t.out, all)
}

// runs is the places of some ranks' blocks. Whole blocks of neighbours are one run.
func (b *blocks) runs(t *Task, st store, ranks []levels.Rank) []Span {
	var all []Span
	whole, differ := b.isWhole(), b.Request.Differ()
	for i := 0; i < len(ranks); {
		s, next := b.blockIn(t, st, ranks[i]), i+1
		each := s.Len
		for whole && each > 0 && next < len(ranks) && ranks[next] == ranks[next-1]+1 {
			if differ {
				each = b.blockIn(t, st, ranks[next]).Len
			}
			s.Len += each
			next++
		}
		if i = next; s.Len > 0 {
			all = append(all, s)
		}
	}
	return all
}

// blockIn is the place of a segment's part of a rank's block in a store.
func (b *blocks) blockIn(t *Task, st store, r levels.Rank) Span {
	size := int64(b.Request.Type.Size())
	off, n := b.Request.Block(r)
	begin := int64(t.Segment) * b.elems * size
	s := st.span(max(0, min(b.elems*size, n-begin)))
	switch st.holds {
	case allBlocks:
		s.Off += off
	case someBlocks:
		i, _ := slices.BinarySearch(b.stored, r)
		s.Off += b.starts[i]
	}
	return s
}
