// Package circulant lowers tasks to schedules on circulant graphs. They are round-optimal for
// any number of ranks and any root: n ranks have m blocks after m-1+⌈log2 n⌉ rounds, and in each
// of them a rank sends and receives at most one. A chain takes m-1+n-1 rounds, a binomial tree
// m⌈log2 n⌉.
//
// The graph and its schedules are those of J. L. Träff: (Poly)Logarithmic Time Construction of
// Round-optimal n-Block Broadcast Schedules, CLUSTER 2022 (arXiv:2205.10072), Round-optimal
// n-Block Broadcast Schedules in Logarithmic Time, 2023 (arXiv:2312.11236), and Optimal
// Broadcast Schedules in Logarithmic Time with Applications to Broadcast, All-Broadcast,
// Reduction and All-Reduction, 2024 (arXiv:2407.18004). The schedules of an allreduce, and of
// parts of one block each, are those of Optimal, Non-pipelined Reduce-scatter and Allreduce
// Algorithms, 2024 (arXiv:2410.14234).
//
// Blocks are the inner segments of a message or of a member's part: circulant/blocks/8KiB. An
// allreduce takes 2⌈log2 n⌉ rounds and cuts its messages by them. Steps wait for their blocks
// and, as in adapt, for earlier ones of the same kind, not for rounds. It emits steps only.
// Every rank finds its own schedule from its place in the group; nothing is exchanged for it.
package circulant

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Circulant is the submodule.
type Circulant struct{}

var _ submodules.Submodule = Circulant{}

// Name is the word in plans.
func (Circulant) Name() string { return submodules.Circulant }

// Doc describes it.
func (Circulant) Doc() string {
	return "round-optimal schedules on circulant graphs over links (Träff, CLUSTER 2022, arXiv:2407.18004)"
}

// Reach is any kind of link.
func (Circulant) Reach() submodules.Reach { return submodules.Anywhere }

// lowering emits one task.
type lowering func(e *submodules.Emitter, c *submodules.Call)

// algorithms are the catalogue with a lowering for each operation they do.
var algorithms = submodules.Catalogue[lowering]{
	{
		Algorithm: submodules.Algorithm{
			Name: submodules.Blocks, Source: "Träff, CLUSTER 2022, arXiv:2407.18004", Inner: true,
			Doc:   "each inner segment goes its own way: log2(n) rounds deep, each rank hears it once",
			Needs: []submodules.Restriction{submodules.NeedsCommutative},
			// Blocks and frames together fill packets: a sixteenth less than powers of two.
			Inners: []int64{2 << 10, 6 << 10, 10 << 10, 15 << 10, 30 << 10},
			Traits: submodules.Traits{Ways: submodules.Doublings, Traffic: submodules.
				Alike(submodules.CirculantGraph, submodules.Doublings, submodules.Doublings, tasks.Bcast, tasks.Reduce).
				And(submodules.CirculantGraph, submodules.Doublings, 0, tasks.Allgather, tasks.ReduceScatter).
				And(submodules.CirculantGraph, submodules.TwiceDoublings, 0, tasks.Allreduce)},
		},
		Lower: map[tasks.Collective]lowering{
			tasks.Bcast: bcast, tasks.Reduce: reduce,
			tasks.Allgather: allgather, tasks.ReduceScatter: reduceScatter, tasks.Allreduce: allreduce,
		},
	},
}

// listed is the result of Algorithms. Decisions ask for it often.
var listed = algorithms.Algorithms()

// Algorithms lists them.
func (Circulant) Algorithms() []submodules.Algorithm { return listed }

// Lower emits one task.
func (Circulant) Lower(e *submodules.Emitter, c *submodules.Call) error {
	lower, err := algorithms.Find(c)
	if err == nil && !c.Alone(e) {
		lower(e, c)
	}
	return err
}
