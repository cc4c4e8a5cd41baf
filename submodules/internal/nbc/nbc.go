// Package nbc lowers tasks to rounds, as Libnbc does (Hoefler, Lumsdaine, Rehm, SC
// 2007). It is HAN's submodule Libnbc. The steps of a rank's round run side by side, except for
// long messages down a tree, see [submodules.Turns],
// and the next round begins when all of them have ended. Nothing overlaps across
// rounds, and a task's result is there when its last round ends.
//
// It emits steps only. Vectors are divided by whole elements. For algorithms on a power of two
// of ranks other groups fold to one. The messages of a barrier have no bytes; each algorithm
// sends them in its own rounds.
package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// NBC is the submodule.
type NBC struct{}

var _ submodules.Submodule = NBC{}

// Name is the word in plans.
func (NBC) Name() string { return submodules.NBC }

// Doc describes it.
func (NBC) Doc() string { return "schedules of rounds over links (Libnbc, SC 2007; HAN, III)" }

// Reach is any kind of link.
func (NBC) Reach() submodules.Reach { return submodules.Anywhere }

// lowering emits one task.
type lowering func(r *rounds, c *submodules.Call)

// algorithms are the catalogue with a lowering for each of their operations. The first for an
// operation is its default, Libnbc's choice for few bytes.
var algorithms = submodules.Catalogue[lowering]{
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Binomial, Source: "Libnbc, SC 2007; coll/libnbc",
			Doc:    "binomial tree: log2(n) rounds deep, all bytes in every round",
			Needs:  []submodules.Restriction{submodules.NeedsRootFirst},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.DigitTree, submodules.Doublings, submodules.Doublings, tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter, tasks.Prefix)},
		},
		Lower: map[tasks.Collective]lowering{
			tasks.Bcast: down(trees.Binomial), tasks.Reduce: binomialReduce, tasks.Prefix: prefixBy(trees.Binomial),
			tasks.Gather: binomialGather, tasks.Scatter: binomialScatter,
		},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Linear, Source: "coll/libnbc; coll/basic",
			Doc:    "the root sends to all in one round, or combines one rank after the other",
			InTurn: true,
			Traits: submodules.Traits{Traffic: submodules.
				Alike(submodules.StarTree, submodules.Others, submodules.Others, tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter, tasks.Prefix).
				And(submodules.AllAtOnce, 0, submodules.Others, tasks.Allgather, tasks.Alltoall, tasks.Neighbors).
				And(submodules.ChainTree, submodules.Others, submodules.Neighbours, tasks.Scan, tasks.Exscan)},
		},
		Lower: map[tasks.Collective]lowering{
			tasks.Scan: linearScan, tasks.Exscan: linearScan, tasks.Prefix: prefixBy(trees.Linear),
			tasks.Bcast: linearBcast, tasks.Reduce: linearReduce,
			tasks.Gather: linearGather, tasks.Scatter: linearScatter, tasks.Allgather: linearAllgather,
			tasks.Alltoall: linearAlltoall, tasks.Neighbors: linearAlltoall,
		},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.KNomial, Source: "coll/libnbc",
			Doc:    "binomial tree in digits of four: half as deep, up to three sends in a round",
			Number: submodules.Number{Meaning: "radix", Usual: trees.Radix, Worth: []int{8}},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.DigitTree, 0, 0, tasks.Bcast)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Bcast: func(r *rounds, c *submodules.Call) { down(trees.Knomials(c.N))(r, c) }},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Chain, Source: "Libnbc, SC 2007; coll/libnbc", Inner: true,
			Doc:    "each rank feeds the next, an inner segment a round",
			Needs:  []submodules.Restriction{submodules.NeedsRootFirst},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.ChainTree, submodules.Others, submodules.Neighbours, tasks.Bcast, tasks.Reduce)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Bcast: chainBcast, tasks.Reduce: chainReduce},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.RecDoubling, Source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005; coll/libnbc",
			Doc:    "recursive doubling: log2(n) exchanges of all that two ranks have; an allreduce in digits of a radix takes fewer rounds of more messages",
			Number: submodules.Number{Meaning: "radix of an allreduce, a power of two or the one below", Usual: 2, Worth: []int{4, 8}},
			Needs:  []submodules.Restriction{submodules.NeedsPowerOfTwo},
			Traits: submodules.Traits{Folds: true, Traffic: submodules.Alike(submodules.RecursiveDoubling, submodules.Doublings, submodules.Doublings, tasks.Allreduce, tasks.Allgather, tasks.Scan, tasks.Exscan)},
		},
		Lower: map[tasks.Collective]lowering{
			tasks.Allreduce: recursiveDoubling, tasks.Allgather: recursiveDoublingAllgather,
			tasks.Scan: recursiveDoublingScan, tasks.Exscan: recursiveDoublingScan,
		},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Rabenseifner, Source: "Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp, IJHPCA 2005; coll/libnbc",
			Doc:    "reduce-scatter by recursive halving, then gather or allgather: about twice the bytes, whatever n",
			Traits: submodules.Traits{Folds: true, Traffic: submodules.Alike(submodules.HalvingDoubling, submodules.TwiceDoublings, submodules.Doublings, tasks.Reduce, tasks.Allreduce)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Reduce: rabenseifnerReduce, tasks.Allreduce: rabenseifnerAllreduce},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Ring, Source: "Patarasuk, Yuan, JPDC 2009; coll/libnbc",
			Doc:   "reduce-scatter and allgather around a ring: fewest bytes, n-1 rounds each",
			Needs: []submodules.Restriction{submodules.NeedsCommutative},
			Traits: submodules.Traits{Traffic: submodules.
				Alike(submodules.AroundRing, submodules.TwiceOthers, submodules.Neighbours, tasks.Allreduce).
				And(submodules.AroundRing, submodules.Others, submodules.Neighbours, tasks.Allgather, tasks.ReduceScatter)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Allreduce: ring, tasks.Allgather: ringAllgather, tasks.ReduceScatter: ringReduceScatter},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Halving, Source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005; coll/tuned recursive_halving",
			Doc:    "recursive halving: log2(n) exchanges, each of half the bytes of the one before",
			Needs:  []submodules.Restriction{submodules.NeedsCommutative, submodules.NeedsPowerOfTwo},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.RecursiveHalving, submodules.Doublings, submodules.Doublings, tasks.ReduceScatter)},
		},
		Lower: map[tasks.Collective]lowering{tasks.ReduceScatter: halvingReduceScatter},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Pairwise, Source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005; MPICH",
			Doc:    "all exchange parts with all in one round and combine them in the order of ranks; an alltoall takes a round for each partner",
			InTurn: true,
			Traits: submodules.Traits{Traffic: submodules.
				Alike(submodules.AllAtOnce, submodules.Others, submodules.Others, tasks.ReduceScatter).
				And(submodules.OneByOne, 0, submodules.Others, tasks.Alltoall).
				And(0, submodules.Others, submodules.Others, tasks.Scan, tasks.Exscan)},
		},
		Lower: map[tasks.Collective]lowering{
			tasks.ReduceScatter: pairwiseReduceScatter, tasks.Alltoall: pairwiseAlltoall, tasks.Scan: pairwiseScan, tasks.Exscan: pairwiseScan,
		},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.NonOverlapping, Source: "coll/tuned non-overlapping", Tree: true,
			Doc:    "reduce to the lowest rank along the in-order binomial tree, then scatter",
			Traits: submodules.Traits{Traffic: submodules.Alike(0, 0, submodules.Others, tasks.ReduceScatter)},
		},
		Lower: map[tasks.Collective]lowering{tasks.ReduceScatter: nonOverlapping},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Dissemination, Source: "Hensgen, Finkel, Manber, IJPP 1988; Open MPI calls it bruck",
			Doc:    "each round a rank tells one twice as far what it has heard: log2(n) rounds, any number of ranks",
			Number: submodules.Number{Meaning: "radix", Usual: 2, Worth: []int{4, 8}},
			Needs:  []submodules.Restriction{submodules.NeedsNoData},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.DistanceDoubling, submodules.Doublings, 0, tasks.Allreduce)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Allreduce: dissemination},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Neighbor, Source: "Chen, Sun, Zhang, IPDPS 2005; coll/tuned neighbor exchange",
			Doc:    "n/2 rounds, each with the neighbour on the other side, two parts at a time",
			Needs:  []submodules.Restriction{submodules.NeedsEven},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.NeighborExchange, submodules.Half, submodules.Neighbours, tasks.Allgather)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Allgather: neighborAllgather},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Bruck, Source: "Bruck et al., IEEE TPDS 1997; coll/tuned bruck",
			Doc:    "log2(n) rounds, any number of ranks: each gets as many parts as it has; an alltoall passes blocks on by the digits of the way they have to go",
			Number: submodules.Number{Meaning: "radix of an alltoall", Usual: 2, Worth: []int{4, 8}},
			Needs:  []submodules.Restriction{submodules.NeedsDense},
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.DistanceDoubling, submodules.Doublings, 0, tasks.Allgather, tasks.Alltoall)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Allgather: bruckAllgather, tasks.Alltoall: bruckAlltoall},
	},
}

// listed is the result of Algorithms. Decisions ask for it often.
var listed = algorithms.Algorithms()

// Algorithms lists them.
func (NBC) Algorithms() []submodules.Algorithm { return listed }

// Lower emits the rounds of one rank.
func (NBC) Lower(e *submodules.Emitter, c *submodules.Call) error {
	lower, err := algorithms.Find(c)
	if err != nil {
		return err
	}
	r := &rounds{e: e, gate: submodules.None}
	if !c.Alone(e) {
		lower(r, c)
	}
	return nil
}
