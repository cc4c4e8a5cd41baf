package fixed

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// blocks is the round-optimal schedule that stands for what tierflow has for powers of two
// alone.
var blocks = tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks}

// choices are tierflow's algorithms of Open MPI's names.
var choices = map[tasks.Collective]map[algorithm]tasks.Choice{
	tasks.Bcast: {
		binary: adapt(submodules.Binary), binomial: adapt(submodules.Binomial), chain: adapt(submodules.Chain), knomial: nbc(submodules.KNomial),
		linear: nbc(submodules.Linear), pipeline: adapt(submodules.Chain), splitBinary: adapt(submodules.SplitBinary),
	},
	tasks.Reduce: {
		binary: adapt(submodules.Binary), binomial: adapt(submodules.Binomial), chain: adapt(submodules.Chain), inOrderBinary: adapt(submodules.InOrderBinary),
		linear: nbc(submodules.Linear), pipeline: adapt(submodules.Chain), rabenseifner: nbc(submodules.Rabenseifner),
	},
	tasks.Allreduce: {
		rabenseifner: nbc(submodules.Rabenseifner), recursiveDoubling: nbc(submodules.RecDoubling),
		ring: nbc(submodules.Ring), segmentedRing: nbc(submodules.Ring),
	},
	tasks.Allgather: {
		bruck: nbc(submodules.Bruck), neighbor: nbc(submodules.Neighbor), recursiveDoubling: nbc(submodules.RecDoubling),
		ring: nbc(submodules.Ring), twoProc: nbc(submodules.RecDoubling),
	},
	tasks.Gather:        {binomial: nbc(submodules.Binomial), linear: adapt(submodules.Linear), linearSync: adapt(submodules.Linear)},
	tasks.Scatter:       {binomial: nbc(submodules.Binomial), linear: adapt(submodules.Linear), linearNB: adapt(submodules.Linear)},
	tasks.ReduceScatter: {butterfly: nbc(submodules.Halving), linear: nbc(submodules.NonOverlapping), recursiveDoubling: nbc(submodules.Halving), recursiveHalving: nbc(submodules.Halving)},
	tasks.Alltoall: {
		linear: adapt(submodules.Linear), linearSync: adapt(submodules.Linear), modifiedBruck: nbc(submodules.Bruck),
		pairwise: nbc(submodules.Pairwise), twoProc: nbc(submodules.Pairwise),
	},
}

// closest names the algorithm that a plan has in place of Open MPI's, by the latter.
var closest = map[tasks.Collective]map[algorithm]string{
	tasks.Gather:        {linearSync: "linear gather, which waits for nobody"},
	tasks.ReduceScatter: {butterfly: "recursive halving", recursiveDoubling: "recursive halving, which sends less"},
	tasks.Alltoall:      {linearSync: "linear alltoall, all messages at once"},
}

// inGroup returns what tuned does in a group of ranks, and whatever differs. Preconditions
// that fail lead to another algorithm, as they do in ompi/mca/coll/base.
func inGroup(op tasks.Collective, ranks int, bytes, count int64) (name algorithm, differs string) {
	name = tunedTables[op].look(ranks, bytes)
	switch {
	case op == tasks.Allreduce && ranks == 1:
		name = linear
	case op == tasks.Allgather && name == recursiveDoubling && !isPower(ranks):
		name = bruck
	case op == tasks.Allgather && name == neighbor && ranks%2 == 1:
		name = ring
	case name == rabenseifner && count < powerBelow(ranks):
		name = linear
	case op == tasks.Allreduce && (name == ring || name == segmentedRing) && count < int64(ranks):
		name = recursiveDoubling
	}
	return name, closest[op][name]
}

// chosen returns tierflow's algorithm for one of Open MPI's.
func chosen(op tasks.Collective, name algorithm, ranks int) (c tasks.Choice, differs string) {
	if op == tasks.ReduceScatter && name != linear && !isPower(ranks) {
		return blocks, "a round-optimal reduce-scatter"
	}
	return choices[op][name], closest[op][name]
}

// tuned is Open MPI's tuned: all ranks are one group, and nothing is cut.
func tuned(q *question) Decision {
	op := q.request.Coll
	name, _ := inGroup(op, q.ranks, q.bytes, q.request.Count)
	d := Decision{Theirs: "tuned " + string(name)}
	switch {
	case op == tasks.Bcast && name == scatterAllgather:
		d.Plan, d.Closest = q.scatterAllgather(tasks.FlatSAG, []string{q.top}, q.ranks, nbc(submodules.RecDoubling))
	case op == tasks.Allreduce && (name == linear || name == nonOverlapping):
		d.Plan = q.plan(tasks.Flat)
		for _, part := range []tasks.Collective{tasks.Reduce, tasks.Bcast} {
			c := nbc(submodules.Linear)
			if name == nonOverlapping {
				c, d.Closest = inTree(part, q.ranks, q.bytes, q.request.Count)
			}
			d.Plan = on(d.Plan, []string{q.top}, part, c)
		}
	default:
		shape := tasks.Flat
		if op == tasks.Allreduce {
			shape = tasks.FlatAR
		}
		var c tasks.Choice
		c, d.Closest = chosen(op, name, q.ranks)
		d.Plan = on(q.plan(shape), []string{q.top}, op, c)
	}
	return d
}

// inTree is tuned's algorithm for a part of a larger collective, which has to be one task:
// a binomial tree stands for a scatter and an allgather.
func inTree(op tasks.Collective, ranks int, bytes, count int64) (c tasks.Choice, differs string) {
	name, _ := inGroup(op, ranks, bytes, count)
	if name == scatterAllgather {
		return adapt(submodules.Binomial), "a binomial tree in place of scatter_allgather"
	}
	return chosen(op, name, ranks)
}

// scatterAllgather is a binomial scatter and an allgather, of a bcast. Where the allgather
// needs a power of two a dissemination stands for it.
func (q *question) scatterAllgather(shape tasks.Shape, symbols []string, ranks int, gather tasks.Choice) (p tasks.Plan, differs string) {
	if gather.Algorithm == submodules.RecDoubling && !isPower(ranks) {
		gather, differs = nbc(submodules.Bruck), "an allgather by Bruck, as fast as recursive doubling"
	}
	p = on(q.plan(shape), symbols, tasks.Scatter, nbc(submodules.Binomial))
	return on(p, symbols, tasks.Allgather, gather), differs
}
