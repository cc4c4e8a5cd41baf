package tasks

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
)

// MaxSegments bounds the segments of one task graph. A longer message runs in
// passes over the same graph, see [Passes].
const MaxSegments = 1024

// The kinds of edges between tasks of one rank.
const (
	// DataEdge: the later task uses what the earlier one left on this rank.
	DataEdge dag.EdgeKind = iota + 1
	// SlotEdge: the later task reuses memory of the earlier one, a window apart.
	SlotEdge
	// StageEdge: the task belongs to the next stage of a lockstep shape, which
	// begins when all tasks of the stage before have ended on this rank.
	StageEdge
	// OrderEdge: the next segment of the same kind. It serves stages, models and
	// lockstep; dataflow shapes don't wait for it.
	OrderEdge
)

// ErrPlan is what a plan that can't be expanded for a request wraps.
var ErrPlan = errors.New("plan doesn't fit the request")

// Task is one sub-collective on one segment in one group, as one rank takes
// part in it.
type Task struct {
	Kind    Kind
	Level   int8
	Phase   int8 // place of the kind in the collective's pipeline, from 0
	Segment int32
	Group   *levels.Group
	Src     Span // what this rank puts in: of blocks, the first or only one's part
	Dst     Span // where this rank's result goes
	in, out store
}

// String is the task's label: ib#3.
func (t Task) String() string { return fmt.Sprintf("%v#%d", t.Kind, t.Segment) }

// Graph is the tasks of one rank, in canonical order: by segment, then by
// phase. All ranks that share a task meet it at the same place in that order.
type Graph struct {
	dag.Graph[Task]
	Request  Request
	Plan     Plan
	On       *levels.Hierarchy
	Rank     levels.Rank
	Segments int
	Phases   []Phase    // of all ranks, in the order of the pipeline
	Partial  int64      // bytes at the beginning of scratch that are the tasks'
	elems    int64      // of a segment, of all but the last
	last     [][]dag.ID // per phase, the tasks by segment
	roles    []role     // by phase, this rank's
	kept     int64      // bytes of a slot in scratch, see keep
	blocks   blocks
	exchange exchange
	scan     scan
}

// layout is where a rank has what its tasks work on.
type layout interface {
	keep() int64                // lays out what the rank keeps of a segment between phases; its bytes
	locate(t *Task, first bool) // says where a task finds its data and where it leaves it; first: of a segment on the rank
}

// blocks is the layout of all other requests, with blocks or with one vector.
type blocks struct {
	*Graph
	stored []levels.Rank // whose blocks this rank keeps in scratch
	starts []int64       // where they begin in a slot, bytes, and where the last ends
}

// exchange is the layout of an exchange: where a rank has blocks with two ends.
type exchange struct {
	*Graph
	given  pairStore                     // what those that this rank leads give
	gotten pairStore                     // and what they get
	lanes  map[levels.Rank][]levels.Rank // see owners; nil until asked
}

// scan is the layout of a scan: where a rank has its values.
type scan struct {
	*Graph
	ups []int // the phases on the way up in which this rank has a task
}

// layout is the one of the request.
func (g *Graph) layout() layout {
	switch {
	case g.Request.Coll.Scans():
		return &g.scan
	case g.Request.Exchanges():
		return &g.exchange
	}
	return &g.blocks
}

// holdLayouts ties the layouts to their graph.
func (g *Graph) holdLayouts() {
	g.blocks.Graph, g.exchange.Graph, g.scan.Graph = g, g, g
}

// Phase is one stop of a segment on its way: all tasks of one kind.
type Phase struct {
	Kind  Kind
	Level int // of the hierarchy
}

// Expand makes the task graph of one rank for a request of at most
// [MaxSegments] segments. Plan must name shape, segment and window; choices
// don't matter here. A rank that has nothing to do gets an empty graph.
func Expand(r Request, t *levels.Topology, p Plan, rank levels.Rank) (*Graph, error) {
	h, err := Hierarchy(r, t, p)
	if err != nil {
		return nil, err
	}
	return ExpandOn(r, h, p, rank)
}

// Hierarchy is the one that p's shape uses for r. It depends on the request's
// root and operation only, so callers may keep it.
func Hierarchy(r Request, t *levels.Topology, p Plan) (*levels.Hierarchy, error) {
	if err := r.Validate(t.Size()); err != nil {
		return nil, fmt.Errorf("%v: %w", r, err)
	}
	root := levels.Rank(0)
	if r.Rooted() {
		root = r.Root
	}
	if !p.Shape.Fits(r.Coll) {
		return nil, fmt.Errorf("%v: %w: %q: a %v has the shapes %v", r, ErrPlan, p, r.Coll, ShapesOf(r.Coll))
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

// ExpandOn is [Expand] on a hierarchy that [Hierarchy] returned.
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
	g.holdLayouts()
	g.Plan.Window = g.window()
	g.Grow(g.Segments*len(g.Phases), 3*g.Segments*len(g.Phases))
	g.last = make([][]dag.ID, len(g.Phases))
	for at := range g.last {
		g.last[at] = make([]dag.ID, 0, g.Segments)
	}
	g.cast()
	g.keep()
	g.expand()
	return g, nil
}

// window returns how many segments may be in flight. In place in a buffer that has a
// block for each rank it is one if blocks differ: the result of a segment lies over
// inputs of earlier ones.
func (g *Graph) window() int {
	row := g.Request.Coll.row()
	if row.Placement == InRecv && row.takesBlocks() && g.Request.InPlace && g.Request.Counts.Len() > 0 {
		return 1
	}
	return g.Plan.Window
}

// segments is [Segments] of a plan that says how to cut.
func segments(r Request, p Plan) (elems, n int64, err error) {
	if p.Segment < 1 || p.Window < 1 {
		return 0, 0, fmt.Errorf("%v: %w: %q lacks a segment size (fs) or a window (w)", r, ErrPlan, p)
	}
	elems, n = Segments(r, p)
	return elems, n, nil
}

// Segments returns the elements of a segment, of all except the last, and how many
// segments p cuts r into. A request without data has one, of no elements.
func Segments(r Request, p Plan) (elems, n int64) {
	if !r.Coll.HasData() || r.Type.Size() == 0 {
		return 0, 1
	}
	elems = max(1, min(p.Segment/int64(r.Type.Size()), max(r.Count, 1)))
	if r.Differ() { // passes are alike, blocks that differ are not
		elems = max(elems, (r.Count+MaxSegments-1)/MaxSegments)
	}
	n = r.Count / elems
	if n*elems < r.Count {
		n++
	}
	return elems, n
}

// Passes cuts a request of more than [MaxSegments] segments: n equal requests
// one after the other, each offset by whole.Count elements from the one before,
// and a last one for the rest, which may have Count 0.
func Passes(r Request, p Plan) (whole Request, n int64, rest Request, err error) {
	elems, segs, err := segments(r, p)
	if err != nil {
		return r, 0, r, err
	}
	if segs <= MaxSegments {
		return Request{}, 0, r, nil
	}
	whole, rest = r, r
	whole.Count = elems * MaxSegments
	if r.Blocks() {
		whole.Pitch, rest.Pitch = max(r.Pitch, r.Count), max(r.Pitch, r.Count)
	}
	n = r.Count / whole.Count
	rest.Count = r.Count - n*whole.Count
	return whole, n, rest, nil
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
	before := g.before(i, at)
	ph := g.Phases[at]
	t := Task{Kind: ph.Kind, Level: int8(ph.Level), Phase: int8(at), Segment: int32(i), Group: group}
	g.layout().locate(&t, before < 0)
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

// slots returns the number of segments whose partial results a rank holds in scratch. As each
// kind may be a window ahead of the next, one slot more per further kind keeps
// them from waiting for each other, and lockstep stages from waiting in a circle.
func (g *Graph) slots() int {
	return max(1, min(g.Plan.Window+len(g.Phases)-1, g.Segments))
}

// reuse lets segment i's first task, in phase at, wait for all that used its slot
// before: the same phase is behind by a window at most, later ones consume it.
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

// before is the rank's task that a segment passes through before a phase, -1 if
// it is the first.
func (g *Graph) before(i, at int) dag.ID {
	for at--; at >= 0; at-- {
		if i < len(g.last[at]) {
			return g.last[at][i]
		}
	}
	return -1
}

// everyone lists all ranks.
func (g *Graph) everyone() []levels.Rank {
	all := make([]levels.Rank, g.On.Topology().Size())
	for r := range all {
		all[r] = levels.Rank(r)
	}
	return all
}

// slot is where a segment's place in scratch begins, for places of so many bytes.
func (g *Graph) slot(i int, bytes int64) int64 { return int64(i) * aligned(bytes) }

// aligned rounds up to whole cache lines, and so to any element.
func aligned(bytes int64) int64 {
	const line = 64
	return (bytes + line - 1) / line * line
}
