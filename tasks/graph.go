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
	// DataEdge: the later task uses the earlier one's result on this rank.
	DataEdge dag.EdgeKind = iota + 1
	// SlotEdge: the later task reuses memory of the earlier one, a window apart.
	SlotEdge
	// StageEdge: the task belongs to the next stage of a lockstep shape. It begins when all
	// tasks of the stage before have ended on this rank.
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
	Src     Span // this rank's input: of blocks, the first or only one's part
	Dst     Span // the place of this rank's result
	in, out store
}

// String is the task's label: ib#3.
func (t Task) String() string { return fmt.Sprintf("%v#%d", t.Kind, t.Segment) }

// Graph is the tasks of one rank, in canonical order: by segment, then by phase. All ranks of a
// task meet it at the same place in this order.
type Graph struct {
	dag.Graph[Task]
	Request   Request
	Plan      Plan
	On        *levels.Hierarchy
	Rank      levels.Rank
	Segments  int
	Phases    []Phase    // of all ranks, in the order of the pipeline
	Partial   int64      // bytes of the tasks at the beginning of scratch
	elems     int64      // of a segment, of all but the last
	last      [][]dag.ID // per phase, the tasks by segment
	roles     []role     // by phase, this rank's
	slotBytes int64      // of a slot in scratch, see layScratch
	blocks    blocks
	exchange  exchange
	scan      scan
}

// blocks is the places of a rank's blocks with one end, or of the one vector of a request
// without blocks.
type blocks struct {
	*Graph
	stored []levels.Rank // whose blocks this rank keeps in scratch
	starts []int64       // their beginnings in a slot, bytes, and the end of the last one
}

// exchange is the places of a rank's blocks with two ends.
type exchange struct {
	*Graph
	given  pairStore                     // blocks from the ranks that this one leads
	gotten pairStore                     // and blocks for them
	lanes  map[levels.Rank][]levels.Rank // see owners; nil until asked
}

// pairStore is the blocks of a segment that a rank keeps in scratch between two phases: those
// between each of some ranks and each of others.
type pairStore struct {
	outer, inner []levels.Rank // ascending
	byTaker      bool          // outer get the blocks; else they give them
	starts       []int64       // their beginnings, outer by outer, and the end of the last one; bytes
}

// scan is the places of the values of a scan on a rank.
type scan struct {
	*Graph
	ups []int // the phases on the way up with a task of this rank
}

// tiePlaces ties the places of data to their graph.
func (g *Graph) tiePlaces() {
	g.blocks.Graph, g.exchange.Graph, g.scan.Graph = g, g, g
}

// Phase is one stop of a segment on its way: all tasks of one kind.
type Phase struct {
	Kind  Kind
	Level int // of the hierarchy
}

// window returns how many segments may be in flight. In place in a buffer with a block for each
// rank it is one if blocks differ: the result of a segment lies over inputs of earlier ones.
func (g *Graph) window() int {
	row := g.Request.Coll.row()
	if row.Placement == InRecv && row.takesBlocks() && g.Request.InPlace && g.Request.Counts.Len() > 0 {
		return 1
	}
	return g.Plan.Window
}

// segments is [Segments], or an error for a plan without the words for it.
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

// Passes cuts a request of more than [MaxSegments] segments: n equal requests one after the
// other, each offset by whole.Count elements from the one before, and a last one for the rest,
// perhaps of Count 0.
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
// kind may be a window ahead of the next, one slot more per further kind keeps them from waiting
// for each other, and lockstep stages from waiting in a circle.
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

// slot is the beginning of a segment's place in scratch, for places of so many bytes.
func (g *Graph) slot(i int, bytes int64) int64 { return int64(i) * alignLine(bytes) }

// alignLine rounds up to whole cache lines, and so to any element.
func alignLine(bytes int64) int64 {
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

// isWhole reports whether a segment is all of each block: blocks of neighbours then lie side by
// side everywhere.
func (g *Graph) isWhole() bool { return g.Segments == 1 && g.Request.Pitch <= g.Request.Count }

// length is the bytes of a segment.
func (g *Graph) length(t *Task) int64 {
	return min(g.elems, g.Request.Count-int64(t.Segment)*g.elems) * int64(g.Request.Type.Size())
}
