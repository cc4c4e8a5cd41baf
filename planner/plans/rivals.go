package plans

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

// Windows of rivals, in segments: as the rule has them.
const (
	linkWindow = 8
	ringWindow = 3
)

// What a rank has of a segment at least, bytes, where all ranks of a node speak with others at
// once: of those for all ranks, and in lanes. Ranks with smaller parts hold their node up.
var leastFlat, leastLane = rule.Packed(8 << 10), rule.Packed(32 << 10)

// mostSpokes is among how many ranks of all nodes a root may speak with each one, or each with
// all others one by one.
const mostSpokes = 256

// mostAtOnce is how many nodes may all speak with all others at once in parts of a collective.
const mostAtOnce = 64

// mostLinear is among how many ranks an alltoall may be linear: all blocks that a rank has wait
// to be sent at the same time.
const mostLinear = 256

// question is a request on a topology.
type question struct {
	asked   *rule.Asked
	request tasks.Request
	on      *levels.Topology
	insides []tasks.Plan // what may be chosen inside nodes; one without a choice where nodes have one rank
	top     string       // symbol of the outermost level
	nodes   int
	bytes   int64 // of a rank's buffer, or of all blocks together
	blocks  int64 // that make up bytes; 1 without
	all     []tasks.Plan
}

// Rivals lists the plans that compete for a request besides that of the rule: the shapes and algorithms of
// the catalogue between nodes, with segments and windows. Inside nodes they have the choices of the rule's
// plan, ruled, and all others. There are none on one node, and none for collectives whose plans have no
// price.
func Rivals(asked *rule.Asked, ruled tasks.Plan) []tasks.Plan {
	r, t := asked.Request, asked.On
	q := &question{asked: asked, request: r, on: t, nodes: t.Nodes(), bytes: r.AllBytes(t.Size()), blocks: 1}
	if q.nodes < 2 || r.Differ() || r.Reduces() && !r.Op.Commutative() {
		return nil
	}
	if r.Blocks() {
		q.blocks = int64(t.Size())
	}
	q.top = string(t.Level(t.Depth() - 1).Symbol)
	q.inside(ruled)
	switch r.Coll {
	case tasks.Bcast, tasks.Reduce:
		q.rooted()
	case tasks.Allreduce:
		q.allreduce()
	case tasks.Allgather, tasks.ReduceScatter:
		q.parts()
	case tasks.Gather, tasks.Scatter:
		q.spokes()
	case tasks.Alltoall:
		q.exchanges()
	case tasks.Barrier:
		q.barrier()
	}
	return q.all
}

// inside lists what may be chosen inside nodes: first the choices of the rule's plan.
func (q *question) inside(ruled tasks.Plan) {
	if q.on.Size() == q.nodes {
		q.insides = []tasks.Plan{{}}
		return
	}
	if s := ruled.Shape; s.IsFlat() || s == tasks.Lanes {
		ruled, _ = q.asked.Choose(tasks.Plan{Shape: tasks.Han})
	}
	var first tasks.Plan
	for _, key := range ruled.Keys() {
		if key[:1] != q.top {
			c, _ := ruled.Choice(key)
			first = first.Set(key, c)
		}
	}
	q.insides = []tasks.Plan{first}
	all := []tasks.Choice{{Submodule: submodules.SM, Algorithm: submodules.Rings}, {Submodule: submodules.SM}}
	if q.request.Bytes() >= rule.SoloFrom {
		all = append(all, tasks.Choice{Submodule: submodules.Solo})
	}
	for _, c := range all {
		if p := q.everywhereInside(c); !p.Equal(first) {
			q.insides = append(q.insides, p)
		}
	}
}

// everywhereInside is a choice at all levels inside nodes.
func (q *question) everywhereInside(c tasks.Choice) (p tasks.Plan) {
	for k := range q.on.Depth() - 1 {
		p = p.Set(string(q.on.Level(k).Symbol), c)
	}
	return p
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
		q.complete(tasks.Plan{Shape: shape, Segment: segment, Window: window}.Set(q.top, c))
	}
}

// complete adds a plan with each choice for the inside of nodes.
func (q *question) complete(p tasks.Plan) {
	if p.Shape.IsFlat() {
		q.all = append(q.all, p)
		return
	}
	for _, inside := range q.insides {
		if c, _ := inside.Choice("s"); c.Submodule == submodules.Solo && min(p.Segment, q.request.Bytes()) < rule.SoloFrom {
			continue
		}
		q.all = append(q.all, p.Over(inside))
	}
}

// pair adds a plan that scatters one way and gathers another one.
func (q *question) pair(shape tasks.Shape, segment int64, window int, first, second tasks.Collective, scatters, gathers tasks.Choice) {
	p := tasks.Plan{Shape: shape, Segment: segment, Window: window}
	for op, c := range map[tasks.Collective]tasks.Choice{first: scatters, second: gathers} {
		p = p.Set(tasks.Kind{Symbol: q.top[0], Op: op}.String(), c)
	}
	q.complete(p)
}

// few reports whether so few nodes may all speak with all at once.
func (q *question) few() bool { return q.nodes <= mostAtOnce }

// sharesNodes reports whether there is a choice between messages of nodes and of ranks.
func (q *question) sharesNodes() bool { return q.on.Size() > q.nodes }

func isPower(n int) bool { return n&(n-1) == 0 }

// numbered is a choice with a number.
func numbered(c tasks.Choice, n int) tasks.Choice {
	c.N = n
	return c
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
	whole := []tasks.Choice{adapt(submodules.Binomial), numbered(adapt(submodules.Binomial), 4), adapt(submodules.Binary), numbered(adapt(submodules.Binary), 3), numbered(adapt(submodules.Binary), 4)}
	switch {
	case q.nodes == 2: // all trees are one message
		whole = whole[:1]
	case q.few():
		whole = append(whole, nbc(submodules.Linear), adapt(submodules.Linear))
	}
	if q.request.Coll == tasks.Bcast && q.nodes > 2 {
		whole = append(whole, nbc(submodules.KNomial), numbered(nbc(submodules.KNomial), 8))
	} else if q.request.Coll == tasks.Reduce {
		whole = append(whole, nbc(submodules.Rabenseifner))
	}
	q.add(tasks.Han, tasks.Whole, 4, whole...)
	q.add(tasks.Han, tasks.Whole, 4, q.inners(q.bytes)...)
	q.pipelines()
	if q.request.Coll == tasks.Bcast {
		q.scatterGather()
	}
	if q.sharesNodes() {
		q.add(tasks.Flat, tasks.Whole, 4, adapt(submodules.Binomial), numbered(adapt(submodules.Binomial), 4), numbered(adapt(submodules.Binary), 3))
		if q.request.Coll == tasks.Bcast {
			q.add(tasks.Flat, tasks.Whole, 4, nbc(submodules.KNomial), numbered(nbc(submodules.KNomial), 8))
		}
		if q.request.Coll == tasks.Reduce {
			q.add(tasks.Flat, tasks.Whole, 4, nbc(submodules.Rabenseifner))
		}
		q.add(tasks.Flat, tasks.Whole, 4, q.inners(q.bytes)...)
		for _, n := range q.cuts() {
			if q.bytes/n >= int64(q.on.Size()) {
				q.add(tasks.Flat, n, linkWindow, adapt(submodules.Chain), numbered(adapt(submodules.KChain), 2))
			}
			if n <= 64<<10 {
				q.add(tasks.Flat, n, linkWindow, adapt(submodules.Binary))
			}
			if q.request.Coll == tasks.Reduce && n > 64<<10 {
				q.add(tasks.Flat, n, linkWindow, nbc(submodules.Rabenseifner))
			}
		}
	}
}

// scatterGather adds a bcast by a scatter and an allgather.
func (q *question) scatterGather() {
	scatter, gathers := nbc(submodules.Binomial), []tasks.Choice{adapt(submodules.Ring), rounds(0)}
	if q.few() {
		scatter, gathers = adapt(submodules.Linear), append(gathers, adapt(submodules.Linear))
	}
	if q.sharesNodes() {
		spokes := nbc(submodules.Binomial)
		if q.on.Size() <= mostSpokes {
			spokes = adapt(submodules.Linear)
		}
		for _, gather := range []tasks.Choice{adapt(submodules.Ring), rounds(0)} {
			q.pair(tasks.FlatSAG, tasks.Whole, 1, tasks.Scatter, tasks.Allgather, spokes, gather)
		}
	}
	for _, n := range append(q.cuts(), tasks.Whole) {
		for _, gather := range gathers {
			if n >= rule.Packed(64<<10) { // a part of a smaller one is all overhead
				q.pair(tasks.SAG, n, 4, tasks.Scatter, tasks.Allgather, scatter, gather)
				if n == tasks.Whole && q.few() {
					q.pair(tasks.SAG, n, 4, tasks.Scatter, tasks.Allgather, nbc(submodules.Binomial), gather)
				}
			}
		}
	}
}

// pipelines adds trees of flowing segments, and round-optimal schedules of large segments if a node's
// other ranks would wait for a whole one.
func (q *question) pipelines() {
	for _, n := range q.cuts() {
		trees := []tasks.Choice{adapt(submodules.Binomial)}
		if q.nodes > 2 { // else all trees are one message
			trees = append(trees, adapt(submodules.Binary))
			if q.fills(n) {
				trees = append(trees, adapt(submodules.Chain))
			}
		}
		if q.nodes > 8 {
			trees = append(trees, adapt(submodules.KChain), numbered(adapt(submodules.KChain), 2), numbered(adapt(submodules.KChain), 8))
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
	q.add(tasks.Han, tasks.Whole, 4, adapt(submodules.Binomial), numbered(adapt(submodules.Binomial), 4))
	if q.bytes >= 2<<10 {
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
	for _, n := range append(q.cuts(), tasks.Whole) {
		if n < rule.Packed(64<<10) {
			continue
		}
		if q.few() {
			for _, scatter := range []tasks.Choice{nbc(submodules.Pairwise), adapt(submodules.Direct)} {
				q.pair(tasks.RSAG, n, 4, tasks.ReduceScatter, tasks.Allgather, scatter, adapt(submodules.Linear))
			}
		}
		if q.sharesNodes() {
			each := []tasks.Choice{nbc(submodules.RecDoubling), nbc(submodules.Rabenseifner), rounds(0), adapt(submodules.Ring)}
			if n == tasks.Whole || n >= leastFlat*int64(q.on.Size()) {
				q.add(tasks.FlatAR, n, linkWindow, each...)
			}
			if n == tasks.Whole || n >= leastLane*int64(q.on.Size()/q.nodes) {
				q.add(tasks.Lanes, n, linkWindow, each...)
			}
		}
	}
	if q.sharesNodes() {
		for _, n := range q.cuts() {
			if q.bytes/n >= int64(q.on.Size()) {
				q.add(tasks.Flat, n, linkWindow, adapt(submodules.Chain))
			}
			if ring := n * q.blocksOfRing(); ring < 2*q.bytes {
				q.add(tasks.FlatRSAG, min(ring, q.bytes), ringWindow, adapt(submodules.Ring))
			}
		}
		q.add(tasks.FlatRSAG, tasks.Whole, 1, adapt(submodules.Ring))
		if q.on.Size() <= mostSpokes {
			q.pair(tasks.FlatRSAG, tasks.Whole, 1, tasks.ReduceScatter, tasks.Allgather, nbc(submodules.Pairwise), adapt(submodules.Linear))
		}
	}
}

// blocksOfRing returns how many parts a ring of all ranks has.
func (q *question) blocksOfRing() int64 { return int64(q.on.Size()) }

// parts adds the plans of an allgather or a reduce-scatter.
func (q *question) parts() {
	shapes := []tasks.Shape{tasks.Han}
	if q.sharesNodes() {
		shapes = append(shapes, tasks.Flat)
	}
	for _, shape := range shapes {
		ranks := q.nodes
		if shape == tasks.Flat {
			ranks = q.on.Size()
		}
		whole := []tasks.Choice{adapt(submodules.Ring), rounds(0)}
		cut := whole[:1:1]
		if q.request.Coll == tasks.Allgather {
			whole = append(whole, nbc(submodules.Bruck))
			if isPower(ranks) {
				whole = append(whole, nbc(submodules.RecDoubling))
			}
			if ranks%2 == 0 {
				whole = append(whole, nbc(submodules.Neighbor))
				if shape == tasks.Flat {
					cut = append(cut, nbc(submodules.Neighbor))
				}
			}
			if ranks <= mostAtOnce {
				whole, cut = append(whole, adapt(submodules.Linear), nbc(submodules.Linear)), append(cut, adapt(submodules.Linear), nbc(submodules.Linear))
			}
		} else {
			if ranks <= mostSpokes {
				whole = append(whole, nbc(submodules.Pairwise))
			}
			if ranks <= mostAtOnce {
				whole = append(whole, adapt(submodules.Direct))
			}
			if shape == tasks.Flat {
				cut = append(cut, rounds(0))
			}
			if isPower(ranks) {
				whole = append(whole, nbc(submodules.Halving))
			}
		}
		q.add(shape, tasks.Whole, 4, whole...)
		if q.request.Bytes() <= rule.CutFrom {
			continue
		}
		for _, n := range q.cuts() {
			least := int64(1 << 10)
			if shape == tasks.Han && q.sharesNodes() { // a leader with many small messages holds its node up
				least = rule.Packed(64 << 10)
			}
			if ring := n * int64(q.nodes); ring < q.bytes && ring/q.blocks >= least {
				q.add(shape, ring, ringWindow, adapt(submodules.Ring))
			}
			if n < q.request.Bytes() && n >= least {
				q.add(shape, n*q.blocks, ringWindow, cut...)
			}
		}
	}
}

// spokes adds the plans of a gather or a scatter.
func (q *question) spokes() {
	choices := []tasks.Choice{nbc(submodules.Binomial)}
	if q.nodes <= mostSpokes {
		choices = append(choices, adapt(submodules.Linear), nbc(submodules.Linear))
	}
	q.add(tasks.Han, tasks.Whole, 4, choices...)
	flat := choices[:1:1]
	if q.on.Size() <= mostSpokes {
		flat = append(flat, adapt(submodules.Linear), nbc(submodules.Linear))
	}
	if q.sharesNodes() {
		q.add(tasks.Flat, tasks.Whole, 4, flat...)
	}
	if q.request.Bytes() <= rule.CutFrom {
		return
	}
	for _, n := range pieces {
		if n < q.request.Bytes() {
			q.add(tasks.Han, n*q.blocks, ringWindow, choices...)
			if q.sharesNodes() {
				q.add(tasks.Flat, n*q.blocks, ringWindow, flat...)
			}
		}
	}
}

// exchanges adds the plans of an alltoall.
func (q *question) exchanges() {
	shapes := []tasks.Shape{tasks.Han}
	if q.sharesNodes() {
		shapes = []tasks.Shape{tasks.Flat, tasks.Lanes, tasks.Han}
	}
	leaders := q.insides
	for _, shape := range shapes {
		ranks := q.nodes
		q.insides = leaders
		switch shape {
		case tasks.Flat:
			ranks = q.on.Size()
		case tasks.Lanes: // inside, too, all give all others something
			q.insides = append(leaders[:len(leaders):len(leaders)], q.everywhereInside(adapt(submodules.Pairwise)))
		}
		whole := []tasks.Choice{adapt(submodules.Pairwise), nbc(submodules.Pairwise)}
		if ranks <= mostLinear {
			whole = append(whole, adapt(submodules.Linear), nbc(submodules.Linear))
		}
		cut := whole
		if shape != tasks.Lanes {
			whole = append(whole[:len(whole):len(whole)], nbc(submodules.Bruck), numbered(nbc(submodules.Bruck), 4), numbered(nbc(submodules.Bruck), 8))
		}
		q.add(shape, tasks.Whole, 4, whole...)
		for _, n := range pieces {
			if q.sharesNodes() && n < rule.Packed(64<<10) {
				continue // ranks of a node with many small messages hold each other up
			}
			if q.request.Bytes() > rule.CutFrom && n < q.request.Bytes() {
				q.add(shape, n*q.blocks, linkWindow, cut...)
			}
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
