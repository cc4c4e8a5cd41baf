package fixed

import (
	"github.com/tierflow/tierflow/planner/rules/foreign"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// MPICH's thresholds: bytes, or ranks, as each says.
const (
	fewRanks         = 8         // ranks: up to one less a bcast is binomial, and an alltoall has no Bruck
	shortBcast       = 12 << 10  // a binomial tree
	longBcast        = 512 << 10 // from here on a ring gathers the scattered parts
	shortReduce      = 2 << 10   // a binomial tree
	shortAllreduce   = 8         // recursive doubling
	longAllgather    = 512 << 10 // of all blocks, with a power of two of ranks: a ring
	longOddAllgather = 80 << 10  // the same, with another number of ranks
	longScatter      = 512 << 10 // of all blocks of a reduce-scatter: pairwise
	shortAlltoall    = 256       // of a block: Bruck
	longAlltoall     = 32 << 10  // of a block: pairwise above
	cell             = 8 << 10   // of the shared memory of a node
)

// cells are MPICH's release and gather: a node's ranks speak through shared memory in cells.
var cells = tasks.Choice{Submodule: submodules.SM, Algorithm: submodules.Slots, Inner: cell}

// mpich decides as MPICH's ch4: compositions with one leader a node for bcast, reduce and
// allreduce, all ranks as one group for all else. It cuts nothing.
func mpich(q *question) Decision {
	switch q.request.Coll {
	case tasks.Bcast:
		return q.mpichBcast()
	case tasks.Reduce, tasks.Allreduce:
		return q.mpichReduction()
	default:
		return q.mpichFlat(q.mpichBlocks())
	}
}

// mpichFlat is an algorithm of all ranks as one group.
func (q *question) mpichFlat(name string) Decision {
	p, differs := inTable(foreign.MPICH, q.request.Coll, q.ranks, name)
	return Decision{Plan: q.flat(p), Theirs: name, Closest: differs}
}

// ofLeaders is the choice of an algorithm of MPICH's for leaders.
func (q *question) ofLeaders(name string) tasks.Choice {
	p, _ := inTable(foreign.MPICH, q.request.Coll, q.nodes, name)
	return choice(p, q.request.Coll)
}

// isParent reports whether MPICH sees leaders: several nodes, one with several ranks.
func (q *question) isParent() bool { return q.nodes > 1 && q.most > 1 }

// leaderPlan returns a plan by one leader a node, with one operation between them.
func (q *question) leaderPlan(shape tasks.Shape, op tasks.Collective, c tasks.Choice) tasks.Plan {
	p := q.plan(shape)
	for _, s := range q.inside {
		p = p.Set(s, cells)
	}
	return on(p, q.between, op, c)
}

func (q *question) mpichBcast() Decision {
	switch {
	case q.nodes == 1:
		return Decision{Plan: q.leaderPlan(tasks.Han, tasks.Bcast, tasks.Choice{}), Theirs: "release_gather in the node"}
	case q.isParent() && (q.ranks < fewRanks || q.bytes < shortBcast):
		return Decision{
			Plan:   q.leaderPlan(tasks.Han, tasks.Bcast, q.ofLeaders("binomial")),
			Theirs: "composition alpha: binomial between leaders", Closest: "the root leads its node, and no message goes to a leader first",
		}
	case q.isParent() && isPower(q.ranks) && q.bytes < longBcast:
		return q.mpichBeta()
	case q.ranks < fewRanks || q.bytes <= shortBcast:
		return q.mpichFlat("binomial")
	case isPower(q.ranks) && q.bytes <= longBcast:
		return q.mpichFlat("scatter_recursive_doubling_allgather")
	default:
		return q.mpichFlat("scatter_ring_allgather")
	}
}

// mpichBeta is a bcast in the root's node first, then between leaders, then in the others.
func (q *question) mpichBeta() Decision {
	d := Decision{Theirs: "composition beta: between leaders ", Closest: "all nodes' ranks get the message from their leaders, the root's too"}
	gather := nbc(submodules.Ring)
	switch {
	case q.nodes < fewRanks || q.bytes <= shortBcast:
		d.Theirs += "binomial"
		d.Plan = q.leaderPlan(tasks.Han, tasks.Bcast, q.ofLeaders("binomial"))
		return d
	case isPower(q.nodes):
		gather = nbc(submodules.RecDoubling)
	}
	d.Theirs += "scatter and allgather"
	d.Plan = q.leaderPlan(tasks.SAG, tasks.Scatter, nbc(submodules.Binomial))
	d.Plan = on(d.Plan, q.between, tasks.Allgather, gather)
	return d
}

// mpichReduction is a reduce or an allreduce, by leaders if there are any.
func (q *question) mpichReduction() Decision {
	coll, ranks := q.request.Coll, q.ranks
	if q.isParent() {
		ranks = q.nodes
	}
	w := reductions[coll]
	name := w.long
	if q.bytes <= w.most || q.request.Count < powerBelow(ranks) {
		name = w.short
	}
	switch {
	case q.nodes == 1:
		return Decision{Plan: q.leaderPlan(w.shape, coll, tasks.Choice{}), Theirs: w.alone + "release_gather in the node"}
	case q.isParent():
		return Decision{Plan: q.leaderPlan(w.shape, coll, q.ofLeaders(name)), Theirs: w.led + name}
	}
	return q.mpichFlat(name)
}

// reductions are how MPICH reduces: up to most bytes by its short algorithm.
var reductions = map[tasks.Collective]struct {
	shape       tasks.Shape
	most        int64
	short, long string
	alone, led  string // MPICH's names for it on one node, and by leaders
}{
	tasks.Reduce:    {tasks.Han, shortReduce, "binomial", "reduce_scatter_gather", "", "leaders: "},
	tasks.Allreduce: {tasks.AR, shortAllreduce, "recursive_doubling", "reduce_scatter_allgather", "composition gamma: ", "composition alpha: between leaders "},
}

// mpichBlocks is the algorithm of a collective with blocks: all ranks are one group.
func (q *question) mpichBlocks() string {
	all, power := q.bytes*int64(q.ranks), isPower(q.ranks)
	switch q.request.Coll {
	case tasks.Allgather:
		switch {
		case power && all < longAllgather:
			return "recursive_doubling"
		case !power && all < longOddAllgather:
			return "brucks"
		}
		return "ring"
	case tasks.ReduceScatter:
		if all >= longScatter {
			return "pairwise"
		}
		return "recursive_halving"
	case tasks.Alltoall:
		switch {
		case q.ranks >= fewRanks && q.bytes <= shortAlltoall:
			return "brucks"
		case q.bytes <= longAlltoall:
			return "scattered"
		}
		return "pairwise"
	default:
		return "binomial"
	}
}
