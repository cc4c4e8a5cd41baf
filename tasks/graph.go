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

// ErrPlan is wrapped by errors of plans that can't be expanded for a request.
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

// blocks is where a rank has blocks with one end, or the one vector of a request without blocks.
type blocks struct {
	*Graph
	stored []levels.Rank // whose blocks this rank keeps in scratch
	starts []int64       // where they begin in a slot, bytes, and where the last ends
}

// exchange is where a rank has blocks with two ends.
type exchange struct {
	*Graph
	given  pairStore                     // what those that this rank leads give
	gotten pairStore                     // and what they get
	lanes  map[levels.Rank][]levels.Rank // see owners; nil until asked
}

// pairStore is the blocks of a segment that a rank keeps in scratch between two phases: those
// between each of some ranks and each of others.
type pairStore struct {
	outer, inner []levels.Rank // ascending
	byTaker      bool          // outer are those that get the blocks, not those that give them
	starts       []int64       // where each begins, outer by outer, and where the last one ends; bytes
}

// scan is where a rank has the values of a scan.
type scan struct {
	*Graph
	ups []int // the phases on the way up in which this rank has a task
}

// tiePlaces ties the places where data lies to their graph.
func (g *Graph) tiePlaces() {
	g.blocks.Graph, g.exchange.Graph, g.scan.Graph = g, g, g
}

// Phase is one stop of a segment on its way: all tasks of one kind.
type Phase struct {
	Kind  Kind
	Level int // of the hierarchy
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

// slots returns the number of segments whose partial results a rank holds in scratch. As each
// kind may be a window ahead of the next, one slot more per further kind keeps
// them from waiting for each other, and lockstep stages from waiting in a circle.
func (g *Graph) slots() int {
	return max(1, min(g.Plan.Window+len(g.Phases)-1, g.Segments))
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

// final reports whether the rank has no task in a later phase.
func (g *Graph) final(at int) bool {
	for _, later := range g.roles[at+1:] {
		if later.group != nil {
			return false
		}
	}
	return true
}

// isWhole reports whether a segment is all there is of each block, so that blocks of
// neighbours lie side by side everywhere.
func (g *Graph) isWhole() bool { return g.Segments == 1 && g.Request.Pitch <= g.Request.Count }

// length is the bytes of a segment.
func (g *Graph) length(t *Task) int64 {
	return min(g.elems, g.Request.Count-int64(t.Segment)*g.elems) * int64(g.Request.Type.Size())
}
