package priced

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// pieces are the sizes of segments that go from node to node, bytes.
var pieces = []int64{rule.Packed(8 << 10), rule.Packed(16 << 10), rule.Packed(32 << 10), rule.Packed(64 << 10), rule.Packed(128 << 10), rule.Packed(256 << 10), rule.Packed(512 << 10)}

// blockSizes are inner segments of round-optimal schedules, bytes.
var blockSizes = []int64{2 << 10, 5 << 10, 10 << 10, rule.Packed(16 << 10), rule.Packed(32 << 10), rule.Packed(64 << 10), rule.Packed(128 << 10)}

// Windows of candidates, in segments: as the rule has them.
const (
	linkWindow = 8
	ringWindow = 3
)

// question is a request on a topology.
type question struct {
	request tasks.Request
	on      *levels.Topology
	inside  tasks.Plan // what is chosen inside nodes
	top     string     // symbol of the outermost level
	nodes   int
	bytes   int64 // of a rank's buffer, or of all blocks together
	blocks  int64 // that make up bytes; 1 without
	all     []tasks.Plan
}

// Candidates lists the plans that compete for a request besides that of the rule: the
// shapes and algorithms of the catalogue between nodes, with segments and windows. Inside
// nodes each has what the rule's plan has, ruled. There are none on one node, and none for
// collectives whose plans have no price.
func Candidates(r tasks.Request, t *levels.Topology, ruled tasks.Plan) []tasks.Plan {
	q := &question{request: r, on: t, inside: ruled, nodes: t.Nodes(), bytes: r.AllBytes(t.Size()), blocks: 1}
	if q.nodes < 2 || r.Differ() || r.Reduces() && !r.Op.Commutative() {
		return nil
	}
	if r.Blocks() {
		q.blocks = int64(t.Size())
	}
	q.top = string(t.Level(t.Depth() - 1).Symbol)
	if s := ruled.Shape; t.Size() > q.nodes && (s.IsFlat() || s == tasks.Lanes) {
		q.inside, _ = rule.Choose(r, t, tasks.Plan{Shape: tasks.Han})
	}
	switch r.Coll {
	case tasks.Bcast, tasks.Reduce:
		q.rooted()
	case tasks.Allreduce:
		q.allreduce()
	case tasks.Allgather, tasks.ReduceScatter:
		q.parts()
	case tasks.Barrier:
		q.barrier()
	}
	return q.all
}

// adapt and nbc are choices without a number or an inner segment.
func adapt(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.Adapt, Algorithm: algorithm}
}

func nbc(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.NBC, Algorithm: algorithm}
}

// rounds is a round-optimal schedule of blocks of so many bytes; 0: the segment in one.
func rounds(block int64) tasks.Choice {
	return tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks, Inner: block}
}

// add adds plans of a shape, one for each choice between nodes.
func (q *question) add(shape tasks.Shape, segment int64, window int, choices ...tasks.Choice) {
	if segment != tasks.Whole {
		segment = max(segment/q.blocks, 1)
	}
	for _, c := range choices {
		p := tasks.Plan{Shape: shape, Segment: segment, Window: window}.Set(q.top, c)
		q.all = append(q.all, p.Over(q.inside))
	}
}

// cuts lists the segments that a message may be cut into, bytes.
func (q *question) cuts() []int64 {
	if q.bytes <= rule.CutFrom {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pieces), func(n int64) bool { return n >= q.bytes })
}

// inners lists round-optimal schedules for a segment, with the segment as one block first.
func (q *question) inners(segment int64) []tasks.Choice {
	all := []tasks.Choice{rounds(0)}
	for _, n := range blockSizes {
		if n < min(segment, q.bytes) {
			all = append(all, rounds(n))
		}
	}
	return all
}

// fills reports whether a segment leaves enough of them for a chain of the nodes.
func (q *question) fills(segment int64) bool {
	return q.nodes <= 2 || (q.bytes+segment-1)/segment >= int64(q.nodes)
}

// rooted adds the plans of a bcast or a reduce.
func (q *question) rooted() {
	whole := []tasks.Choice{adapt(submodules.Binomial), adapt(submodules.Binary)}
	if q.nodes <= rule.LinearRanks {
		whole = append(whole, nbc(submodules.Linear))
	}
	if q.request.Coll == tasks.Bcast {
		whole = append(whole, nbc(submodules.KNomial))
	} else if q.bytes > rule.CutFrom {
		whole = append(whole, nbc(submodules.Rabenseifner))
	}
	q.add(tasks.Han, tasks.Whole, 4, whole...)
	if q.bytes > 4<<10 {
		q.add(tasks.Han, tasks.Whole, 4, q.inners(q.bytes)...)
	}
	q.pipelines()
}

// pipelines adds trees through which segments flow, and round-optimal schedules of large
// segments where a node's other ranks would wait for a whole one.
func (q *question) pipelines() {
	for _, n := range q.cuts() {
		trees := []tasks.Choice{adapt(submodules.Binomial), adapt(submodules.Binary)}
		if q.fills(n) {
			trees = append(trees, adapt(submodules.Chain))
		}
		if q.nodes > 8 {
			trees = append(trees, adapt(submodules.KChain))
		}
		q.add(tasks.Han, n, linkWindow, trees...)
	}
	if q.on.Size() == q.nodes {
		return
	}
	for _, n := range []int64{rule.Packed(128 << 10), rule.Packed(256 << 10), rule.Packed(512 << 10), 1 << 20} {
		if n < q.bytes {
			q.add(tasks.Han, n, 4, q.inners(n)...)
		}
	}
}

// allreduce adds the plans of an allreduce.
func (q *question) allreduce() {
	q.add(tasks.AR, tasks.Whole, 4, nbc(submodules.RecDoubling), nbc(submodules.Rabenseifner), rounds(0), adapt(submodules.Ring))
	if q.nodes <= rule.LinearRanks {
		q.add(tasks.Han, tasks.Whole, 4, nbc(submodules.Linear))
	}
	q.add(tasks.Han, tasks.Whole, 4, adapt(submodules.Binomial))
	if q.bytes > 4<<10 {
		q.add(tasks.Han, tasks.Whole, 4, q.inners(q.bytes)...)
	}
	for _, n := range q.cuts() {
		if n >= rule.Packed(64<<10) {
			q.add(tasks.AR, n, linkWindow, nbc(submodules.RecDoubling), nbc(submodules.Rabenseifner), rounds(0))
		}
		if ring := n * int64(q.nodes); ring < 2*q.bytes {
			q.add(tasks.RSAG, min(ring, q.bytes), ringWindow, adapt(submodules.Ring))
		}
	}
	q.pipelines()
}

// parts adds the plans of an allgather or a reduce-scatter.
func (q *question) parts() {
	whole := []tasks.Choice{adapt(submodules.Ring), rounds(0)}
	powerOfTwo := q.nodes&(q.nodes-1) == 0
	if q.request.Coll == tasks.Allgather {
		whole = append(whole, nbc(submodules.Bruck))
		if powerOfTwo {
			whole = append(whole, nbc(submodules.RecDoubling))
		}
	} else {
		if q.nodes <= rule.LinearRanks {
			whole = append(whole, nbc(submodules.Pairwise))
		}
		if powerOfTwo {
			whole = append(whole, nbc(submodules.Halving))
		}
	}
	q.add(tasks.Han, tasks.Whole, 4, whole...)
	if q.request.Bytes() <= rule.CutFrom {
		return
	}
	for _, n := range q.cuts() {
		if ring := n * int64(q.nodes); ring < q.bytes && ring/q.blocks >= 1<<10 {
			q.add(tasks.Han, ring, ringWindow, adapt(submodules.Ring))
		}
	}
}

// barrier adds the plans of a barrier.
func (q *question) barrier() {
	q.add(tasks.AR, tasks.Whole, 4, nbc(submodules.Dissemination), nbc(submodules.RecDoubling))
	if q.nodes <= rule.LinearRanks {
		q.add(tasks.Han, tasks.Whole, 4, nbc(submodules.Linear))
	}
}
