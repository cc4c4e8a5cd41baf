// Package adapt lowers tasks to event-driven trees of sends and receives: each inner
// segment moves on as soon as it is there, and waits for no other. It is the design
// of ADAPT (Luo et al., HPDC 2018), HAN's submodule between nodes.
//
// Requests in flight are bounded as there, by steps that wait for earlier ones of the
// same task: memory and posted receives don't grow with the message. It emits steps
// only; the shapes of trees are in package trees.
package adapt

import (
	"fmt"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// Adapt is the submodule.
type Adapt struct{}

var _ submodules.Submodule = Adapt{}

// Name is the word in plans.
func (Adapt) Name() string { return submodules.Adapt }

// Doc says what it is.
func (Adapt) Doc() string { return "event-driven trees over links (ADAPT, HPDC 2018; HAN, III)" }

// Reach says that it works over links of any kind.
func (Adapt) Reach() submodules.Reach { return submodules.Anywhere }

// algorithm is a catalogue entry with its lowerings, nil for what it doesn't do.
type algorithm struct {
	name, doc, source string
	needs             []submodules.Restriction
	tree              bool // keeps tasks.TreeOrder
	inTurn            bool // scans rank after rank
	number            submodules.Number
	traits            submodules.Traits
	lower             map[tasks.Collective]lowering
}

// lowering emits one task.
type lowering func(e *submodules.Emitter, c *submodules.Call)

// algorithms in the order of the catalogue.
var algorithms = []algorithm{
	rooted(submodules.Binomial, knomials, "log2(n) rounds deep, the root sends log2(n) times", "ADAPT, HPDC 2018; coll/adapt binomial").
		with("radix of the ranks' digits", 2, 4).moves(treeTraffic(submodules.Doublings, submodules.Doublings)),
	chain(),
	rooted(submodules.KChain, trees.KChains, "four parallel chains below the root, a quarter as long", "coll/adapt chain, coll/tuned chain").
		with("chains", trees.Chains, 2, 8),
	rooted(submodules.Binary, trees.Fans, "each rank feeds two, whatever the size of the group", "coll/adapt binary, coll/tuned binary_tree").
		with("ranks that each feeds", 2, 3, 4),
	linear(),
	{
		name: submodules.Ring, doc: "each passes on to the next what it gets, piece by piece",
		source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005; Patarasuk, Yuan, JPDC 2009, without rounds",
		needs:  []submodules.Restriction{submodules.NeedsCommutative},
		lower: map[tasks.Collective]lowering{
			tasks.Allgather: ringAllgather, tasks.ReduceScatter: ringReduceScatter, tasks.Allreduce: ringAllreduce,
		},
		traits: submodules.Traits{Traffic: map[tasks.Collective]submodules.Traffic{
			tasks.Allreduce:     {Rounds: submodules.TwiceOthers, Partners: submodules.Neighbours},
			tasks.Allgather:     {Rounds: submodules.Others, Partners: submodules.Neighbours},
			tasks.ReduceScatter: {Rounds: submodules.Others, Partners: submodules.Neighbours},
		}},
	},
	{
		name: submodules.Direct, doc: "all send each its part at once, and combine what comes along the tree over ranks: for order=tree",
		source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005, 4.2: pairwise exchange, without rounds", tree: true,
		lower: map[tasks.Collective]lowering{tasks.ReduceScatter: directReduceScatter},
		traits: submodules.Traits{Traffic: map[tasks.Collective]submodules.Traffic{
			tasks.ReduceScatter: {Rounds: submodules.Others, Partners: submodules.Others},
		}},
	},
	{
		name: submodules.Pairwise, doc: "one exchange after the other; messages up to the plan's eager=… leave at once",
		source: "Fagg et al., EuroPVM/MPI 2006, 6.2: switchable alltoallv",
		lower:  map[tasks.Collective]lowering{tasks.Alltoall: pairwiseAlltoall},
		traits: submodules.Traits{Traffic: map[tasks.Collective]submodules.Traffic{
			tasks.Alltoall: {Partners: submodules.Others},
		}},
	},
	{
		name: submodules.InOrderBinary, doc: "binary tree over the ranks as they are numbered: keeps their order under any leader",
		source: "coll/tuned in-order_binary",
		lower:  map[tasks.Collective]lowering{tasks.Bcast: inOrderBcast, tasks.Reduce: inOrderReduce(trees.InOrder, trees.Top)},
		traits: submodules.Traits{InOrder: true, Like: submodules.Binary, Share: 1},
	},
	{
		name: submodules.InOrderBinomial, doc: "binomial tree over the ranks as they are numbered: for order=tree, under any leader",
		source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005, rooted at the lowest rank", tree: true,
		lower:  map[tasks.Collective]lowering{tasks.Reduce: inOrderReduce(trees.Binomial, func(int) int { return 0 })},
		traits: submodules.Traits{InOrder: true, Like: submodules.Binomial, Share: 1, Traffic: submodules.Alike(submodules.Doublings, submodules.Doublings, tasks.Reduce)},
	},
	{
		name: submodules.SplitBinary, doc: "half of the message down each side of a binary tree, then pairs exchange halves",
		source: "coll/tuned split_binary_tree; Pjesivac-Grbovic et al., Cluster Computing 2007",
		lower:  map[tasks.Collective]lowering{tasks.Bcast: splitBcast},
		traits: submodules.Traits{Ways: submodules.Neighbours, Like: submodules.Binary, Share: 0.5},
	},
}

// knomials is the binomial tree, or one in digits of another radix.
func knomials(radix int) trees.Shape { return trees.Knomials(max(radix, 2)) }

// with gives an algorithm a number, with its meaning, its usual value and those that are worth a search.
func (a algorithm) with(meaning string, usual int, worth ...int) algorithm {
	a.number = submodules.Number{Meaning: meaning, Usual: usual, Worth: worth}
	return a
}

// treeTraffic is that of a tree in all that goes along one.
func treeTraffic(rounds, partners submodules.Growth) submodules.Traits {
	return submodules.Traits{Traffic: submodules.Alike(rounds, partners, tasks.Bcast, tasks.Reduce, tasks.Prefix)}
}

// moves gives an algorithm its traits.
func (a algorithm) moves(t submodules.Traits) algorithm {
	a.traits = t
	return a
}

// rooted is the algorithm that goes along a tree rooted at the leader, whose shape depends on
// the plan's number.
func rooted(name string, shapes func(number int) trees.Shape, doc, source string) algorithm {
	return algorithm{
		name: name, doc: doc, source: source,
		needs: []submodules.Restriction{submodules.NeedsRootFirst},
		lower: map[tasks.Collective]lowering{
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
		},
	}
}

// chain is the longest tree, and the way of a scan.
func chain() algorithm {
	a := rooted(submodules.Chain, func(int) trees.Shape { return trees.Chain }, "each rank feeds the next; best when many segments fill it", "ADAPT, HPDC 2018; coll/adapt pipeline")
	a.lower[tasks.Scan], a.lower[tasks.Exscan], a.inTurn = chainScan, chainScan, true
	a.traits.Traffic = submodules.Alike(submodules.Others, submodules.Neighbours, tasks.Bcast, tasks.Reduce, tasks.Prefix, tasks.Scan, tasks.Exscan)
	return a
}

// linear is the flattest tree.
func linear() algorithm {
	a := rooted(submodules.Linear, trees.Linears, "the root feeds all, up to 32 of them directly", "coll/adapt linear").
		with("ranks that each feeds in a bcast, reduce or prefix", trees.MaxFan).moves(treeTraffic(submodules.Others, submodules.Others))
	a.lower[tasks.Gather], a.lower[tasks.Scatter], a.lower[tasks.Allgather] = linearGather, linearScatter, linearAllgather
	a.lower[tasks.Alltoall], a.lower[tasks.Neighbors] = linearAlltoall, linearAlltoall
	for _, op := range []tasks.Collective{tasks.Gather, tasks.Scatter, tasks.Allgather} {
		a.traits.Traffic[op] = submodules.Traffic{Rounds: submodules.Others, Partners: submodules.Others}
	}
	for _, op := range []tasks.Collective{tasks.Alltoall, tasks.Neighbors} {
		a.traits.Traffic[op] = submodules.Traffic{Partners: submodules.Others}
	}
	return a
}

// listed is what Algorithms returns. Searches ask for it often.
var listed = list()

// Algorithms lists them.
func (Adapt) Algorithms() []submodules.Algorithm { return listed }

func list() []submodules.Algorithm {
	all := make([]submodules.Algorithm, len(algorithms))
	for i, a := range algorithms {
		all[i] = submodules.Algorithm{Name: a.name, Doc: a.doc, Source: a.source, Needs: a.needs, Tree: a.tree, InTurn: a.inTurn, Inner: true, Number: a.number, Traits: a.traits}
		for _, op := range tasks.Collectives() {
			if a.lower[op] != nil {
				all[i].Ops = append(all[i].Ops, op)
			}
		}
	}
	return all
}

// Lower emits one task.
func (Adapt) Lower(e *submodules.Emitter, c *submodules.Call) error {
	for _, a := range algorithms {
		if lower := a.lower[c.Kind.Op]; a.name == c.Algorithm && lower != nil {
			lower(e, c)
			return nil
		}
	}
	return fmt.Errorf("%v by %s: %w", c.Kind.Op, c.Algorithm, submodules.ErrUnsupported)
}
