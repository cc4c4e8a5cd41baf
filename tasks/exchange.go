package tasks

import "github.com/tierflow/tierflow/levels"

// An exchange's blocks have two ends: one rank gives a block, another gets it. Without
// levels each goes straight from the input of the one to the result of the other. With
// shape=han it passes through the leaders of both:
//
//	2x2 ranks        rank 0 has the blocks from > to
//	sg   inside      0>0 0>1 0>2 0>3  1>0 1>1 1>2 1>3
//	ia   of leaders  0>0 1>0 2>0 3>0  0>1 1>1 2>1 3>1
//	ss   inside      0>0 1>0 2>0 3>0

// layScratch lays out this rank's scratch for a segment, and returns its bytes. A leader keeps the blocks given
// by the ranks below it, then those for them. With shape=lanes each rank keeps its node's blocks for the
// ranks it sends to.
func (x *exchange) layScratch() int64 {
	if x.Plan.Shape == Lanes {
		return x.layLanes()
	}
	led := []levels.Rank(nil)
	tasks := 0
	for at, ph := range x.Phases {
		if x.roles[at].group != nil && ph.Kind.Op != Scatter {
			led = x.On.Under(x.Rank, ph.Level)
			tasks++
		}
	}
	if tasks < 2 {
		return 0
	}
	x.given = x.layPairs(led, x.everyone(), false, 0)
	x.gotten = x.layPairs(led, x.everyone(), true, x.given.end())
	return x.gotten.end()
}

// locate sets the places of a task's blocks before and after it.
func (x *exchange) locate(t *Task, first bool) {
	begin := int64(t.Segment) * x.elems * int64(x.Request.Type.Size())
	slot := x.slot(int(t.Segment)%x.slots(), x.slotBytes)
	t.in = store{Scratch, slot, givenPairs}
	if first {
		t.in = store{x.Request.Input(x.Rank), begin, inputPairs}
	}
	t.out = store{Scratch, slot, gottenPairs}
	if x.final(int(t.Phase)) {
		t.out = store{Recv, begin, resultPairs}
	}
	switch {
	case t.Kind.Op == Gather:
		t.out = store{Scratch, slot, givenPairs}
	case t.Kind.Op == Scatter:
		t.in = store{Scratch, slot, gottenPairs}
	case x.Plan.Shape == Lanes && !x.final(int(t.Phase)):
		t.out = store{Scratch, slot, lanePairs}
	}
	t.Src, t.Dst = t.in.span(x.length(t)), t.out.span(x.length(t))
}

// pairsOf returns the places of all blocks from a rank, or for it, in a store. Whole ones are
// one run.
func (x *exchange) pairsOf(t *Task, st store, rank levels.Rank, gets bool) []Span {
	var all []Span
	for other := range levels.Rank(x.On.Topology().Size()) {
		from, to := rank, other
		if gets {
			from, to = to, from
		}
		switch s := x.pairIn(t, st, from, to); {
		case s.Len == 0:
		case x.isWhole() && len(all) > 0:
			all[0].Len += s.Len
		default:
			all = append(all, s)
		}
	}
	return all
}

// Exchange returns the pieces for each member of the group in an alltoall's task, and those from
// each, as places on this rank. The pieces from one member to another are as many, and as long,
// on both.
func (g *Graph) Exchange(t *Task) (out, in [][]Span) {
	me := t.Group.Pos(g.Rank)
	out, in = make([][]Span, len(t.Group.Ranks)), make([][]Span, len(t.Group.Ranks))
	for member := range t.Group.Ranks {
		out[member] = g.exchange.pieces(t, t.in, me, member)
		in[member] = g.exchange.pieces(t, t.out, member, me)
	}
	return out, in
}

// IsDense reports whether in every group of a phase each member gives each as many bytes.
func (g *Graph) IsDense(ph Phase) bool {
	if !g.Request.Matrix.IsZero() || g.Plan.Shape == Lanes && len(g.Phases) > 1 {
		return false
	}
	for _, group := range g.Groups(ph) {
		for _, r := range group.Ranks {
			if len(g.On.Under(r, ph.Level)) != len(g.On.Under(group.Ranks[0], ph.Level)) {
				return false
			}
		}
	}
	return true
}

// pieces are the blocks from one member to another, by their places in a store.
func (x *exchange) pieces(t *Task, st store, giver, taker int) (all []Span) {
	switch {
	case x.isAmongAll(int(t.Phase)):
		return x.betweenLanes(t, st, t.Group.Ranks[giver], t.Group.Ranks[taker])
	case x.Plan.Shape == Lanes && len(x.Phases) > 1:
		return x.toLane(t, st, t.Group.Ranks[giver], t.Group.Ranks[taker])
	}
	speaks := x.roles[t.Phase].speaks
	for _, from := range speaks[giver] {
		for _, to := range speaks[taker] {
			if s := x.pairIn(t, st, from, to); s.Len > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}
