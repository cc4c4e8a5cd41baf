package rule

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// algorithms are the rows that choose who does an operation of a level, and how.
var algorithms = []row[tasks.Choice]{
	{
		when(treeSum, operation(tasks.Reduce)),
		adapt(submodules.InOrderBinomial), "it combines along the tree over ranks",
	},
	{
		when(treeSum, operation(tasks.ReduceScatter)),
		nbc(submodules.NonOverlapping), "it combines along the tree over ranks, then scatters",
	},
	{
		when(treeSum, operation(tasks.Scan, tasks.Exscan), between),
		adapt(submodules.Chain), "it adds one rank after the other",
	},
	{
		when(operation(tasks.Reduce), ordered, rootElsewhere),
		adapt(submodules.InOrderBinary), "it keeps the order of ranks, whichever leads",
	},
	{
		when(insideNode, tiny, fewPeers),
		tasks.Choice{Submodule: submodules.SM, Algorithm: submodules.Rings},
		"a message and its arrival are one write",
	},
	{
		when(operation(tasks.Allreduce), noData),
		nbc(submodules.Dissemination), "fewest steps, for any number of ranks",
	},
	{
		when(operation(tasks.Allreduce), commutes, unfilled, between, powerOfTwo),
		nbc(submodules.Rabenseifner), "the bytes of a ring in a logarithm of its steps",
	},
	{
		when(operation(tasks.Allreduce), commutes, unfilled, between),
		circulant(0), "the bytes of a ring in a logarithm of its steps, for any number of nodes",
	},
	{
		when(operation(tasks.Allreduce), commutes, halves, between),
		nbc(submodules.Rabenseifner), "the bytes of a ring in a logarithm of its steps",
	},
	{
		when(operation(tasks.Allreduce), commutes, shaped(tasks.Lanes), between, powerOfTwo, not(twoNodes)),
		nbc(submodules.Rabenseifner), "the bytes of a ring in a logarithm of its steps; each rank of a node has a share",
	},
	{
		when(operation(tasks.Allreduce), commutes, shaped(tasks.Lanes), between, not(twoNodes)),
		circulant(0), "the bytes of a ring in a logarithm of its steps, for any number of nodes; each rank of a node has a share",
	},
	{
		when(operation(tasks.Allreduce), commutes, free, small, not(tiny), between, not(powerOfTwo)),
		circulant(0), "the bytes of a ring in a logarithm of its steps, for any number of nodes",
	},
	{
		when(operation(tasks.Allreduce), small),
		nbc(submodules.RecDoubling), "fewest steps",
	},
	{
		when(operation(tasks.Allreduce), twoNodes, commutes),
		nbc(submodules.RecDoubling), "between two, one exchange carries no byte more than a ring",
	},
	{
		when(operation(tasks.Allreduce), ordered),
		nbc(submodules.Rabenseifner), "it keeps the order of ranks",
	},
	{
		when(operation(tasks.Allreduce)),
		adapt(submodules.Ring), "fewest bytes",
	},
	{
		when(insideNode, readable),
		tasks.Choice{Submodule: submodules.Solo},
		"goroutines read each other's memory: one copy",
	},
	{
		when(operation(tasks.Alltoall), insideNode, readsPay),
		tasks.Choice{Submodule: submodules.Solo},
		"the kernel copies a block once, from rank to rank; through slots it would be twice",
	},
	{
		when(operation(tasks.Bcast), insideNode, crowdedNodes, tiny),
		adapt(submodules.Binomial), "a full node has its own tree: one rank would speak with each of the others",
	},
	{
		when(operation(tasks.Gather, tasks.Scatter), insideNode, crowdedNodes, tiny),
		nbc(submodules.Binomial), "a full node has its own tree: one rank would speak with each of the others",
	},
	{
		when(operation(tasks.Reduce), insideNode, commutes, crowdedNodes, small),
		adapt(submodules.Binomial), "a full node has its own tree: one rank would add up all by itself",
	},
	{
		when(operation(tasks.Reduce), insideNode, commutes, fullNodes, large),
		adapt(submodules.Binomial), "a full node has its own tree: one rank would add up all by itself",
	},
	{
		when(insideNode),
		tasks.Choice{Submodule: submodules.SM},
		"the node's memory is shared",
	},
	{
		when(operation(tasks.Scan, tasks.Exscan), fewHops),
		adapt(submodules.Chain), "a short chain: one message for each node, where fewer steps take several",
	},
	{
		when(operation(tasks.Scan, tasks.Exscan), star),
		nbc(submodules.Pairwise), "one round; each of so small messages costs the processor more than the wire",
	},
	{
		when(operation(tasks.Scan, tasks.Exscan), small),
		nbc(submodules.RecDoubling), "fewest steps",
	},
	{
		when(operation(tasks.Scan, tasks.Exscan), between, farScan),
		nbc(submodules.RecDoubling), "a logarithm of steps: so few bytes don't pay for a chain",
	},
	{
		when(operation(tasks.Scan, tasks.Exscan)),
		adapt(submodules.Chain), "each node sends and receives the message once, segment by segment",
	},
	{
		when(operation(tasks.Alltoall), between, passedOn),
		tasks.Choice{Submodule: submodules.NBC, Algorithm: submodules.Bruck, N: 4},
		"fewest messages; blocks travel several times",
	},
	{
		when(operation(tasks.Alltoall)),
		adapt(submodules.Linear), "each block crosses the wire once, those of other nodes first",
	},
	{
		when(operation(tasks.Gather, tasks.Scatter)),
		adapt(submodules.Linear), "a block crosses each level once",
	},
	{
		when(operation(tasks.Allgather), small),
		nbc(submodules.Bruck), "a logarithm of steps, for any number of ranks",
	},
	{
		when(operation(tasks.ReduceScatter), small),
		nbc(submodules.Pairwise), "one round",
	},
	{
		when(operation(tasks.ReduceScatter), ordered),
		nbc(submodules.Pairwise), "it keeps the order of ranks",
	},
	{
		when(operation(tasks.Allgather, tasks.ReduceScatter), between, either(unfilled, fullNodes)),
		circulant(0), "the bytes of a ring in a logarithm of its steps, for any number of nodes",
	},
	{
		when(operation(tasks.Allgather, tasks.ReduceScatter)),
		adapt(submodules.Ring), "fewest bytes",
	},
	{
		inRounds(manyRounds, upTo(8<<10)),
		circulant(2 << 10), "as many hops as a tree has, and each node gets the message once",
	},
	{
		inRounds(not(manyRounds), not(upTo(32<<10)), upTo(64<<10)),
		circulant(8 << 10), "as many hops as a tree has, and each node gets the message once; more and shorter rounds cost processors more than they save",
	},
	{
		inRounds(upTo(64 << 10)),
		circulant(4 << 10), "as many hops as a tree has, and each node gets the message once",
	},
	{
		inRounds(upTo(192 << 10)),
		circulant(8 << 10), "as many hops as a tree has, and each node gets the message once",
	},
	{
		inRounds(upTo(512 << 10)),
		circulant(10 << 10), "as many hops as a tree has, and each node gets the message once",
	},
	{
		inRounds(upTo(2 << 20)),
		circulant(Packed(16 << 10)), "as many hops as a tree has, and each node gets the message once",
	},
	{
		inRounds(),
		circulant(Packed(32 << 10)), "as many hops as a tree has, and each node gets the message once",
	},
	{
		when(operation(tasks.Bcast), manySpokes),
		nbc(submodules.KNomial), "half as many hops as a binomial tree",
	},
	{
		when(star),
		nbc(submodules.Linear), "two hops; each of so small messages costs the processor more than the wire",
	},
	{
		when(either(small, oneNode)),
		adapt(submodules.Binomial), "a shallow tree: latency counts",
	},
	{nil, adapt(submodules.Chain), "each node sends and receives the message once, segment by segment"},
}

func adapt(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.Adapt, Algorithm: algorithm}
}

// circulant has inner segments of so many bytes; 0: none.
func circulant(inner int64) tasks.Choice {
	return tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks, Inner: inner}
}

func nbc(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.NBC, Algorithm: algorithm}
}
