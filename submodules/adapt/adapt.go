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
	"slices"

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
	number            string
	numbers           []int
	lower             map[tasks.Collective]lowering
}

// lowering emits one task.
type lowering func(e *submodules.Emitter, c *submodules.Call)

// algorithms in the order of the catalogue.
var algorithms = []algorithm{
	rooted(submodules.Binomial, knomials, "log2(n) rounds deep, the root sends log2(n) times", "ADAPT, HPDC 2018; coll/adapt binomial").
		with("radix of the ranks' digits, default 2", 4),
	chain(),
	rooted(submodules.KChain, trees.KChains, "four parallel chains below the root, a quarter as long", "coll/adapt chain, coll/tuned chain").
		with("chains, default 4", 2, 8),
	rooted(submodules.Binary, trees.Fans, "each rank feeds two, whatever the size of the group", "coll/adapt binary, coll/tuned binary_tree").
		with("ranks that each feeds, default 2", 3, 4),
	linear(),
	{
		name: submodules.Ring, doc: "each passes on to the next what it gets, piece by piece",
		source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005; Patarasuk, Yuan, JPDC 2009, without rounds",
		needs:  []submodules.Restriction{submodules.NeedsCommutative},
		lower: map[tasks.Collective]lowering{
			tasks.Allgather: ringAllgather, tasks.ReduceScatter: ringReduceScatter, tasks.Allreduce: ringAllreduce,
		},
	},
	{
		name: submodules.Pairwise, doc: "one exchange after the other; messages up to the plan's eager=… leave at once",
		source: "Fagg et al., EuroPVM/MPI 2006, 6.2: switchable alltoallv",
		lower:  map[tasks.Collective]lowering{tasks.Alltoall: pairwiseAlltoall},
	},
	{
		name: submodules.InOrderBinary, doc: "binary tree over the ranks as they are numbered: keeps their order under any leader",
		source: "coll/tuned in-order_binary",
		lower:  map[tasks.Collective]lowering{tasks.Bcast: inOrderBcast, tasks.Reduce: inOrderReduce(trees.InOrder, trees.Top)},
	},
	{
		name: submodules.InOrderBinomial, doc: "binomial tree over the ranks as they are numbered: for order=tree, under any leader",
		source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005, rooted at the lowest rank", tree: true,
		lower: map[tasks.Collective]lowering{tasks.Reduce: inOrderReduce(trees.Binomial, func(int) int { return 0 })},
	},
	{
		name: submodules.SplitBinary, doc: "half of the message down each side of a binary tree, then pairs exchange halves",
		source: "coll/tuned split_binary_tree; Pjesivac-Grbovic et al., Cluster Computing 2007",
		lower:  map[tasks.Collective]lowering{tasks.Bcast: splitBcast},
	},
}

// knomials is the binomial tree, or one in digits of another radix.
func knomials(radix int) trees.Shape { return trees.Knomials(max(radix, 2)) }

// with gives an algorithm a number: what it means, and which are worth a search.
func (a algorithm) with(number string, worth ...int) algorithm {
	a.number, a.numbers = number, worth
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
	return a
}

// linear is the flattest tree.
func linear() algorithm {
	a := rooted(submodules.Linear, trees.Linears, "the root feeds all, up to 32 of them directly", "coll/adapt linear").
		with("ranks that each feeds in a bcast, reduce or prefix, default 32")
	a.lower[tasks.Gather], a.lower[tasks.Scatter], a.lower[tasks.Allgather] = linearGather, linearScatter, linearAllgather
	a.lower[tasks.Alltoall] = linearAlltoall
	return a
}

// listed is what Algorithms returns. Searches ask for it often.
var listed = list()

// Algorithms lists them.
func (Adapt) Algorithms() []submodules.Algorithm { return slices.Clone(listed) }

func list() []submodules.Algorithm {
	all := make([]submodules.Algorithm, len(algorithms))
	for i, a := range algorithms {
		all[i] = submodules.Algorithm{Name: a.name, Doc: a.doc, Source: a.source, Needs: a.needs, Tree: a.tree, InTurn: a.inTurn, Inner: true, Number: a.number, Numbers: a.numbers}
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
