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
	Src     Span // what this rank puts in
	Dst     Span // where this rank's result goes
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
	Phases   []Phase       // of all ranks, in the order of the pipeline
	Partial  int64         // bytes at the beginning of scratch that are the tasks'
	last     [][]dag.ID    // per phase, the tasks by segment
	stored   []levels.Rank // whose blocks a Gather's rank that isn't the root keeps
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
	switch p.Shape {
	case Flat:
		return t.Flat(root), nil
	case Han, HanLockstep:
		h := t.Hierarchy(root)
		if r.Reduces() && !r.Op.Commutative() && !h.Ordered() {
			return nil, fmt.Errorf("%v: %w: shape=%v needs a commutative operation or ranks that are numbered node by node; shape=flat keeps rank order on any layout", r, ErrPlan, p.Shape)
		}
		return h, nil
	}
	return nil, fmt.Errorf("%v: %w: %q names no known shape; known are %v", r, ErrPlan, p, Shapes())
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
	g := &Graph{Request: r, Plan: p, On: h, Rank: rank, Segments: int(n), Phases: pipeline(r, h)}
	g.Grow(g.Segments*len(g.Phases), 3*g.Segments*len(g.Phases))
	g.last = make([][]dag.ID, len(g.Phases))
	for at := range g.last {
		g.last[at] = make([]dag.ID, 0, g.Segments)
	}
	if r.Coll == Gather && !r.Receives(rank) {
		g.stored = g.stores()
	}
	if n := g.held(segElems * int64(r.Type.Size())); n > 0 {
		g.Partial = g.place(g.slots()-1, 0, n).Off + n
	}
	g.expand(segElems)
	return g, nil
}

// segments is the elements of a segment (of all but the last) and how many
// segments the message has.
func segments(r Request, p Plan) (elems, n int64, err error) {
	if p.Segment < 1 || p.Window < 1 {
		return 0, 0, fmt.Errorf("%v: %w: %q lacks a segment size (fs) or a window (w)", r, ErrPlan, p)
	}
	if r.Coll == Barrier {
		return 0, 1, nil
	}
	elems = max(1, min(p.Segment/int64(r.Type.Size()), max(r.Count, 1)))
	n = r.Count / elems
	if n*elems < r.Count {
		n++
	}
	return elems, n, nil
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

// pipeline lists the kinds that r's segments pass through on h, in order.
//
//	Bcast    ib sb        Allreduce, Barrier   sr ir ib sb
//	Reduce   sr ir        Allgather            sg iag sb
//	Gather   sg ig
//
// Levels at which all groups have one rank drop out; a single rank that reduces
// keeps one kind for its own copy.
func pipeline(r Request, h *levels.Hierarchy) []Phase {
	var up, down []Phase
	upwards := Reduce
	if r.Blocks() {
		upwards = Gather
	}
	for k := range h.Depth() {
		if widest(h, k) > 1 {
			sym := h.Level(k).Symbol
			up = append(up, Phase{Kind{sym, upwards}, k})
			down = append([]Phase{{Kind{sym, Bcast}, k}}, down...)
		}
	}
	if top := h.Depth() - 1; len(up) == 0 && (r.Reduces() || r.Blocks()) {
		up = []Phase{{Kind{h.Level(top).Symbol, upwards}, top}}
		down = nil
		if r.Coll == Allgather {
			down = up
		}
	}
	switch last := len(up) - 1; r.Coll {
	case Bcast:
		return down
	case Reduce, Gather:
		return up
	case Allgather:
		up[last].Kind.Op = Allgather // in place of a gather to the top and a bcast from it
		down = down[1:]
	}
	return append(up, down...)
}

func widest(h *levels.Hierarchy, k int) int {
	n := 0
	for _, g := range h.Groups(k) {
		n = max(n, len(g.Ranks))
	}
	return n
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
func (g *Graph) expand(elems int64) {
	if g.Plan.Shape != HanLockstep {
		for i := range g.Segments {
			for at := range g.Phases {
				g.addTask(i, at, elems)
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
			g.addTask(stage-at, at, elems)
			for b := before; b < first && id < dag.ID(g.Len()); b++ {
				g.Connect(b, id, StageEdge)
			}
		}
		if first < dag.ID(g.Len()) {
			before = first
		}
	}
}

// addTask adds the rank's task of a segment in a phase, if it has one. The first
// reduction of a segment reads the caller's input, all others work where the rank
// keeps its partial result: in the receive buffer until the bcast overwrites it,
// or, without one, in scratch.
func (g *Graph) addTask(i, at int, elems int64) {
	ph := g.Phases[at]
	group := g.On.Group(g.Rank, ph.Level)
	if group == nil || len(group.Ranks) == 1 && len(g.Phases) > 1 {
		return
	}
	size := int64(g.Request.Type.Size())
	from := int64(i) * elems
	n := min(elems, g.Request.Count-from)
	before := g.before(i, at)
	src, dst := g.spans(i, Span{Off: from * size, Len: n * size}, elems*size)
	if before >= 0 {
		src = dst
	}
	id := g.Add(Task{
		Kind: ph.Kind, Level: int8(ph.Level), Phase: int8(at), Segment: int32(i),
		Group: group, Src: src, Dst: dst,
	})
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

// spans is what a segment's first task on the rank reads and where all of them
// work: of a request with blocks, the part of the first block. part is the segment
// in a buffer, bytes the length of the longest.
func (g *Graph) spans(i int, part Span, bytes int64) (src, dst Span) {
	in, out := part, part
	in.Region, out.Region = g.Request.Input(g.Rank), Recv
	switch {
	case g.Partial > 0:
		out = g.place(i%g.slots(), part.Len, g.held(bytes))
	case !g.Request.Receives(g.Rank):
		out = in // it only sends
	}
	return in, out
}

// held is the bytes of a segment that a rank without a receive buffer keeps for
// others, for segments of so many bytes.
func (g *Graph) held(bytes int64) int64 {
	switch {
	case g.Request.Receives(g.Rank):
		return 0
	case g.Request.Coll == Gather && len(g.stored) == 1: // it only sends
		return 0
	case g.Request.Coll == Gather:
		return int64(len(g.stored)) * bytes
	}
	return bytes
}

// slots is how many segments' partial results a rank holds in scratch. As each
// kind may be a window ahead of the next, one slot more per further kind keeps
// them from waiting for each other, and lockstep stages from waiting in a circle.
func (g *Graph) slots() int {
	return max(1, min(g.Plan.Window+len(g.Phases)-1, g.Segments))
}

// place is the scratch for n bytes of partial result in a slot of so many bytes.
func (g *Graph) place(slot int, n, bytes int64) Span {
	const align = 64 // a cache line, and any element
	return Span{Region: Scratch, Off: int64(slot) * ((bytes + align - 1) / align * align), Len: n}
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
