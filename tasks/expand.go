package tasks

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
)

// Expand makes the task graph of one rank for a request of at most [MaxSegments] segments. Plan
// must name shape, segment and window; choices don't matter here. A rank without tasks gets an
// empty graph.
func Expand(r Request, t *levels.Topology, p Plan, rank levels.Rank) (*Graph, error) {
	h, err := Hierarchy(r, t, p)
	if err != nil {
		return nil, err
	}
	return ExpandOn(r, h, p, rank)
}

// Hierarchy is the hierarchy of p's shape for r. It depends on the request's root and operation
// only, so callers may keep it.
func Hierarchy(r Request, t *levels.Topology, p Plan) (*levels.Hierarchy, error) {
	if err := r.Validate(t.Size()); err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	root := levels.Rank(0)
	if r.Rooted() {
		root = r.Root
	}
	if !p.Shape.Fits(r.Coll) {
		return nil, fmt.Errorf("%v: %w: %q: the shapes of %v are %s", r, ErrPlan, p, r.Coll, shapesText(r.Coll))
	}
	if p.Shape.IsFlat() {
		return t.Flat(root), nil
	}
	h := t.Hierarchy(root)
	if r.Coll.Scans() {
		h = t.Trailing()
	}
	if err := fits(r, h, p); err != nil {
		return nil, fmt.Errorf("%v: %w: %q: %w", r, ErrPlan, p, err)
	}
	return h, nil
}

// fits says why a shape with levels can't do a request, nil if it can.
func fits(r Request, h *levels.Hierarchy, p Plan) error {
	ordered := r.Reduces() && !r.Op.Commutative()
	switch wide := wideLevels(h); {
	case r.Coll.Scans() && !h.Ordered():
		return fmt.Errorf("a %v with shape=%v needs ranks that are numbered node by node; shape=flat works on any layout", r.Coll, p.Shape)
	case r.Coll.Scans() && p.Order == TreeOrder:
		return fmt.Errorf("order=tree with shape=%v: groups of a %v combine in an order of their own; shape=flat keeps the same on any layout", p.Shape, r.Coll)
	case ordered && !h.Ordered():
		return fmt.Errorf("shape=%v needs a commutative operation or ranks that are numbered node by node; shape=flat keeps rank order on any layout", p.Shape)
	case ordered && p.Shape == Rotate:
		return fmt.Errorf("shape=rotate needs a commutative operation: no rank leads all segments")
	case p.Shape == Lanes && len(wide) > 2:
		return fmt.Errorf("shape=lanes works on two levels, and here %d have groups of several ranks; shape=rsag works on any", len(wide))
	case p.Order == TreeOrder && r.Reduces() && !wholeSubtrees(h):
		return fmt.Errorf("order=tree with shape=%v needs groups that are whole subtrees of the tree over ranks; shape=flat keeps it on any layout", p.Shape)
	}
	return nil
}

// ExpandOn is [Expand] on the result of [Hierarchy].
func ExpandOn(r Request, h *levels.Hierarchy, p Plan, rank levels.Rank) (*Graph, error) {
	segElems, n, err := segments(r, p)
	if err != nil {
		return nil, err
	}
	if n > MaxSegments {
		return nil, fmt.Errorf("%v: %w: %q makes %d segments, one graph holds %d: cut the request with Passes", r, ErrPlan, p, n, MaxSegments)
	}
	if r.InPlace && !r.Matrix.IsZero() && !r.Matrix.IsEven(int(rank)) {
		return nil, fmt.Errorf("%v: in place rank %d must give each rank as many elements as it gets from it", r, rank)
	}
	g := &Graph{Request: r, Plan: p, On: h, Rank: rank, Segments: int(n), elems: segElems, Phases: pipeline(r, h, p.Shape)}
	g.tiePlaces()
	g.Plan.Window = g.window()
	g.Grow(g.Segments*len(g.Phases), 3*g.Segments*len(g.Phases))
	g.last = make([][]dag.ID, len(g.Phases))
	for at := range g.last {
		g.last[at] = make([]dag.ID, 0, g.Segments)
	}
	g.findRoles()
	g.reserve()
	g.expand()
	return g, nil
}

// reserve reserves scratch for this rank's part of a segment between phases if no buffer of the
// caller's can hold it:
//
//	Reduce         partial results, except at the root
//	Gather         the blocks of those it leads, except at the root
//	Scatter        the same
//	ReduceScatter  partial results of all blocks; if it has none, the blocks of those it leads
//	Alltoall       the blocks that those it leads give, and those that they get
func (g *Graph) reserve() {
	if g.slotBytes = g.layScratch(); g.slotBytes > 0 {
		g.Partial = g.slot(g.slots()-1, g.slotBytes) + g.slotBytes
	}
}

// layScratch lays out the rank's scratch for a segment between phases, and returns its bytes.
func (g *Graph) layScratch() int64 {
	switch {
	case g.Request.Coll.Scans():
		return g.scan.layScratch()
	case g.Request.Exchanges():
		return g.exchange.layScratch()
	}
	return g.blocks.layScratch()
}

// expand adds the rank's tasks in canonical order. Dataflow shapes take one
// segment after the other; lockstep takes one stage after the other, the latest
// phase of a stage first. On a leader of an Allreduce (rows: segments, columns:
// stages):
//
//	stage   0    1    2    3    4    5
//	seg 0   sr   ir   ib   sb
//	seg 1        sr   ir   ib   sb
//	seg 2             sr   ir   ib   sb
func (g *Graph) expand() {
	if g.Plan.Shape != HanLockstep {
		for i := range g.Segments {
			for at := range g.Phases {
				g.addTask(i, at)
			}
		}
		return
	}
	last := len(g.Phases) - 1
	var before dag.ID // the first task of the stage before
	for stage := range g.Segments + last {
		first := dag.ID(g.Len())
		for at := min(stage, last); at >= 0 && stage-at < g.Segments; at-- {
			id := dag.ID(g.Len())
			g.addTask(stage-at, at)
			for b := before; b < first && id < dag.ID(g.Len()); b++ {
				g.Connect(b, id, StageEdge)
			}
		}
		if first < dag.ID(g.Len()) {
			before = first
		}
	}
}

// addTask adds the rank's task of a segment in a phase, if it has one.
func (g *Graph) addTask(i, at int) {
	group := g.group(i, at)
	if group == nil {
		return
	}
	before := g.lastBefore(i, at)
	ph := g.Phases[at]
	t := Task{Kind: ph.Kind, Level: int8(ph.Level), Phase: int8(at), Segment: int32(i), Group: group}
	g.locate(&t, before < 0)
	id := g.Add(t)
	if before >= 0 {
		g.Connect(before, id, DataEdge)
	}
	if i >= g.Plan.Window {
		g.Connect(g.last[at][i-g.Plan.Window], id, SlotEdge)
	}
	if before < 0 && g.Partial > 0 {
		g.reuse(i, at, id)
	}
	if i > 0 {
		g.Connect(g.last[at][i-1], id, OrderEdge)
	}
	g.last[at] = append(g.last[at], id)
}

// locate sets the places of a task's data before and after it; first: of its segment on this
// rank.
func (g *Graph) locate(t *Task, first bool) {
	switch {
	case g.Request.Coll.Scans():
		g.scan.locate(t)
	case g.Request.Exchanges():
		g.exchange.locate(t, first)
	default:
		g.blocks.locate(t, first)
	}
}

// reuse lets segment i's first task, in phase at, wait for all earlier users of its slot: the
// same phase is behind by a window at most, later ones consume it.
func (g *Graph) reuse(i, at int, id dag.ID) {
	old := i - g.slots()
	if old < 0 {
		return
	}
	for later := at; later < len(g.Phases); later++ {
		windowed := later == at && g.slots() == g.Plan.Window // by the edge of the phase itself
		if old < len(g.last[later]) && !windowed {
			g.Connect(g.last[later][old], id, SlotEdge)
		}
	}
}

// lastBefore returns the rank's last task on a segment before a phase, -1 if there is none.
func (g *Graph) lastBefore(i, at int) dag.ID {
	for at--; at >= 0; at-- {
		if i < len(g.last[at]) {
			return g.last[at][i]
		}
	}
	return -1
}
