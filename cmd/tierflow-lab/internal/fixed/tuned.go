package fixed

import (
	"cmp"

	"github.com/tierflow/tierflow/planner/rules/foreign"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// blocks is the round-optimal schedule in place of those that tierflow has for powers of two
// alone.
var blocks = tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks}

// theirNames are Open MPI's names of collectives if they differ from tierflow's.
var theirNames = map[tasks.Collective]string{tasks.ReduceScatter: "reduce_scatter_block"}

// longNames are Open MPI's names of algorithms with shorter names for some of its collectives.
var longNames = map[algorithm]string{binary: "binary_tree", linear: "basic_linear"}

// standIns are algorithms without counterpart, with their stand-in and its
// difference.
var standIns = map[tasks.Collective]map[algorithm]struct {
	as      algorithm
	differs string
}{
	tasks.Allgather:     {twoProc: {recursiveDoubling, ""}},
	tasks.Alltoall:      {twoProc: {pairwise, ""}},
	tasks.ReduceScatter: {butterfly: {recursiveHalving, "recursive halving"}, recursiveDoubling: {recursiveHalving, "recursive halving, which sends less"}},
}

// inGroup returns tuned's algorithm in a group of ranks. Where its preconditions fail it is
// another one, as in ompi/mca/coll/base.
func inGroup(op tasks.Collective, ranks int, bytes, count int64) algorithm {
	name := tunedTables[op].look(ranks, bytes)
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
	return name
}

// counterpart returns the plan for one of Open MPI's algorithms, between nodes, and how
// the plan differs. By default chains are a single one.
func counterpart(op tasks.Collective, name algorithm, ranks int) (p tasks.Plan, differs string) {
	if name == chain {
		name = pipeline
	}
	if s, is := standIns[op][name]; is {
		name, differs = s.as, s.differs
	}
	p, how := inTable(foreign.OpenMPI, op, ranks, string(name), longNames[name])
	return p, cmp.Or(differs, how)
}

// inTable returns package foreign's plan for an algorithm with one of some names, and how
// the plan differs.
func inTable(library string, op tasks.Collective, ranks int, names ...string) (p tasks.Plan, differs string) {
	var r foreign.Row
	var err error
	for _, name := range names {
		if r, err = foreign.Find(library, cmp.Or(theirNames[op], op.String()), name); err == nil {
			break
		}
	}
	text := r.For(int64(ranks))
	switch differs = r.Closest; {
	case err != nil:
	case text == "": // it needs a power of two here
		return tasks.Plan{Shape: tasks.Flat}.Set(tasks.Kind{Symbol: 'i', Op: op}.String(), blocks), "a round-optimal reduce-scatter"
	case text != r.Plan && op == tasks.Bcast:
		differs = "an allgather by Bruck, as fast as recursive doubling"
	}
	if err == nil {
		p, err = tasks.ParsePlan(text)
	}
	if err != nil {
		panic("fixed: " + err.Error()) // names are those of this package, and tests go through all
	}
	return p, differs
}

// choice returns a plan's for an operation between nodes.
func choice(p tasks.Plan, op tasks.Collective) tasks.Choice {
	c, _ := p.Choice(tasks.Kind{Symbol: 'i', Op: op}.String())
	return c
}

// flat returns a plan of package foreign, for all ranks as one group.
func (q *question) flat(of tasks.Plan) tasks.Plan {
	p := q.plan(of.Shape)
	for _, key := range of.Keys() {
		c, _ := of.Choice(key)
		p = p.Set(q.top+key[1:], c)
	}
	return p
}

// decideTuned decides as Open MPI's tuned does: all ranks are one group, and nothing is cut.
func decideTuned(q *question) Decision {
	op := q.request.Coll
	name := inGroup(op, q.ranks, q.bytes, q.request.Count)
	d := Decision{Theirs: "tuned " + string(name)}
	if op == tasks.Allreduce && name == nonOverlapping {
		d.Plan = q.plan(tasks.Flat)
		for _, part := range []tasks.Collective{tasks.Reduce, tasks.Bcast} {
			var c tasks.Choice
			c, d.Closest = inTree(part, q.ranks, q.bytes, q.request.Count)
			d.Plan = on(d.Plan, []string{q.top}, part, c)
		}
		return d
	}
	var of tasks.Plan
	of, d.Closest = counterpart(op, name, q.ranks)
	d.Plan = q.flat(of)
	return d
}

// inTree is tuned's algorithm for a part of a larger collective. It has to be one task:
// a binomial tree stands for a scatter and an allgather.
func inTree(op tasks.Collective, ranks int, bytes, count int64) (c tasks.Choice, differs string) {
	name := inGroup(op, ranks, bytes, count)
	if name == scatterAllgather {
		return tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial}, "a binomial tree in place of scatter_allgather"
	}
	p, differs := counterpart(op, name, ranks)
	return choice(p, op), differs
}
