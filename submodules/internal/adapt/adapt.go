// Package adapt lowers tasks to event-driven trees of sends and receives: each inner
// segment moves on as soon as it is there, and waits for no other. It is the design
// of ADAPT (Luo et al., HPDC 2018), HAN's submodule between nodes. Inner segments of over
// 64 KiB leave a rank one after the other, which ADAPT doesn't have: see [submodules.Turns].
//
// Requests in flight are bounded as there, by steps that wait for earlier ones of the
// same task: memory and posted receives don't grow with the message. It emits steps
// only; the shapes of trees are in package trees.
package adapt

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// Adapt is the submodule.
type Adapt struct{}

var _ submodules.Submodule = Adapt{}

// Name is the word in plans.
func (Adapt) Name() string { return submodules.Adapt }

// Doc describes it.
func (Adapt) Doc() string { return "event-driven trees over links (ADAPT, HPDC 2018; HAN, III)" }

// Reach is any kind of link.
func (Adapt) Reach() submodules.Reach { return submodules.Anywhere }

// lowering emits one task.
type lowering func(e *submodules.Emitter, c *submodules.Call)

type entry = submodules.Entry[lowering]

// algorithms in the order of the catalogue.
var algorithms = submodules.Catalogue[lowering]{
	rootedEntry(submodules.Binomial, knomials, submodules.Algorithm{
		Doc: "log2(n) rounds deep, the root sends log2(n) times", Source: "ADAPT, HPDC 2018; coll/adapt binomial",
		Number: submodules.Number{Meaning: "radix of the ranks' digits", Usual: 2, Worth: []int{4}},
		Traits: treeTraits(submodules.DigitTree, submodules.Doublings, submodules.Doublings),
	}),
	chain(),
	rootedEntry(submodules.KChain, trees.KChains, submodules.Algorithm{
		Doc: "four parallel chains below the root, a quarter as long", Source: "coll/adapt chain, coll/tuned chain",
		Traits: treeTraits(submodules.ChainTree, 0, 0),
		Number: submodules.Number{Meaning: "chains", Usual: trees.Chains, Worth: []int{2, 8}},
	}),
	rootedEntry(submodules.Binary, trees.Fans, submodules.Algorithm{
		Doc: "each rank feeds two, whatever the size of the group", Source: "coll/adapt binary, coll/tuned binary_tree",
		Traits: treeTraits(submodules.FanTree, 0, 0),
		Number: submodules.Number{Meaning: "ranks that each feeds", Usual: 2, Worth: []int{3, 4}},
	}),
	linear(),
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Ring, Source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005; Patarasuk, Yuan, JPDC 2009, without rounds",
			Doc:   "each passes on to the next what it gets, piece by piece",
			Needs: []submodules.Restriction{submodules.NeedsCommutative},
			Traits: submodules.Traits{Traffic: submodules.
				Alike(submodules.AroundRing, submodules.TwiceOthers, submodules.Neighbours, tasks.Allreduce).
				And(submodules.AroundRing, submodules.Others, submodules.Neighbours, tasks.Allgather, tasks.ReduceScatter)},
		},
		Lower: map[tasks.Collective]lowering{
			tasks.Allgather: ringAllgather, tasks.ReduceScatter: ringReduceScatter, tasks.Allreduce: ringAllreduce,
		},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Direct, Tree: true, Source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005, 4.2: pairwise exchange, without rounds",
			Doc:    "all send each its part at once, and combine what comes along the tree over ranks: for order=tree",
			Traits: submodules.Traits{Traffic: submodules.Alike(submodules.AllAtOnce, submodules.Others, submodules.Others, tasks.ReduceScatter)},
		},
		Lower: map[tasks.Collective]lowering{tasks.ReduceScatter: directReduceScatter},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Pairwise, Source: "Fagg et al., EuroPVM/MPI 2006, 6.2: switchable alltoallv",
			Doc:    "one exchange after the other; messages up to the plan's eager=… leave at once",
			Traits: submodules.Traits{Eager: true, Traffic: submodules.Alike(submodules.OneByOne, 0, submodules.Others, tasks.Alltoall)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Alltoall: pairwiseAlltoall},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.InOrderBinary, Source: "coll/tuned in-order_binary",
			Doc:    "binary tree over the ranks as they are numbered: keeps their order under any leader",
			Traits: submodules.Traits{InOrder: true, Like: submodules.Binary, Share: 1},
		},
		Lower: map[tasks.Collective]lowering{tasks.Bcast: inOrderBcast, tasks.Reduce: inOrderReduce(trees.InOrder, trees.Top)},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.InOrderBinomial, Tree: true, Source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005, rooted at the lowest rank",
			Doc:    "binomial tree over the ranks as they are numbered: for order=tree, under any leader",
			Traits: submodules.Traits{InOrder: true, Like: submodules.Binomial, Share: 1, Traffic: submodules.Alike(0, submodules.Doublings, submodules.Doublings, tasks.Reduce)},
		},
		Lower: map[tasks.Collective]lowering{tasks.Reduce: inOrderReduce(trees.Binomial, func(int) int { return 0 })},
	},
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.SplitBinary, Source: "coll/tuned split_binary_tree; Pjesivac-Grbovic et al., Cluster Computing 2007",
			Doc:    "half of the message down each side of a binary tree, then pairs exchange halves",
			Traits: submodules.Traits{Ways: submodules.Neighbours, Like: submodules.Binary, Share: 0.5},
		},
		Lower: map[tasks.Collective]lowering{tasks.Bcast: splitBcast},
	},
}

// knomials is the binomial tree, or one in digits of another radix.
func knomials(radix int) trees.Shape { return trees.Knomials(max(radix, 2)) }

// treeTraits are the traits of a tree, in its three operations.
func treeTraits(schedule submodules.Schedule, rounds, partners submodules.Growth) submodules.Traits {
	return submodules.Traits{Traffic: submodules.Alike(schedule, rounds, partners, tasks.Bcast, tasks.Reduce, tasks.Prefix)}
}

// rootedEntry returns the algorithm along a tree rooted at the leader. Its shape depends on the plan's
// number.
func rootedEntry(name string, shapes func(number int) trees.Shape, a submodules.Algorithm) entry {
	a.Name, a.Needs = name, []submodules.Restriction{submodules.NeedsRootFirst}
	return entry{Algorithm: a, Lower: map[tasks.Collective]lowering{
		tasks.Bcast: func(e *submodules.Emitter, c *submodules.Call) {
			at := seatsFrom(c.Group.Leader, c)
			place := shapes(c.N)(at.me, at.n)
			bcast(e, c, at.neighbours(place.Parent, place.LargestFirst()))
		},
		tasks.Reduce: func(e *submodules.Emitter, c *submodules.Call) {
			at := seatsFrom(c.Group.Leader, c)
			place := shapes(c.N)(at.me, at.n)
			reduce(e, c, at.neighbours(place.Parent, place.Children))
		},
		tasks.Prefix: func(e *submodules.Emitter, c *submodules.Call) { prefix(shapes(c.N))(e, c) },
	}}
}

// chain is the longest tree, and the way of a scan.
func chain() entry {
	a := rootedEntry(submodules.Chain, func(int) trees.Shape { return trees.Chain }, submodules.Algorithm{
		Doc: "each rank feeds the next; best when many segments fill it", Source: "ADAPT, HPDC 2018; coll/adapt pipeline", InTurn: true,
		Traits: submodules.Traits{Traffic: submodules.Alike(submodules.ChainTree, submodules.Others, submodules.Neighbours, tasks.Bcast, tasks.Reduce, tasks.Prefix, tasks.Scan, tasks.Exscan)},
	})
	a.Lower[tasks.Scan], a.Lower[tasks.Exscan] = chainScan, chainScan
	return a
}

// linear is the flattest tree.
func linear() entry {
	a := rootedEntry(submodules.Linear, trees.Linears, submodules.Algorithm{
		Doc: "the root feeds all, up to 32 of them directly", Source: "coll/adapt linear",
		Number: submodules.Number{Meaning: "ranks that each feeds in a bcast, reduce or prefix", Usual: trees.MaxFan},
		Traits: treeTraits(submodules.FanTree, submodules.Others, submodules.Others),
	})
	a.Lower[tasks.Gather], a.Lower[tasks.Scatter], a.Lower[tasks.Allgather] = linearGather, linearScatter, linearAllgather
	a.Lower[tasks.Alltoall], a.Lower[tasks.Neighbors] = linearAlltoall, linearAlltoall
	a.Traffic.And(submodules.StarTree, submodules.Others, submodules.Others, tasks.Gather, tasks.Scatter).
		And(submodules.AllAtOnce, submodules.Others, submodules.Others, tasks.Allgather)
	for _, op := range []tasks.Collective{tasks.Alltoall, tasks.Neighbors} {
		a.Traffic[op] = submodules.Traffic{Schedule: submodules.AllAtOnce, Partners: submodules.Others, AtOnce: maxPartners}
	}
	return a
}

// listed is the result of Algorithms. Searches ask for it often.
var listed = list()

// Algorithms lists them.
func (Adapt) Algorithms() []submodules.Algorithm { return listed }

// list has all move inner segments.
func list() []submodules.Algorithm {
	all := algorithms.Algorithms()
	for i := range all {
		all[i].Inner = true
	}
	return all
}

// Lower emits one task.
func (Adapt) Lower(e *submodules.Emitter, c *submodules.Call) error {
	lower, err := algorithms.Find(c)
	if err == nil {
		lower(e, c)
	}
	return err
}
