package rule

import "github.com/tierflow/tierflow/tasks"

// shapes are the rows that choose a shape where none is forced. Where algorithms are
// forced they lead to han: the forced ones may not do what other shapes ask for.
var shapes = []row[tasks.Shape]{
	{
		when(sums, free, commutes, large, fullNodes, fits(tasks.Lanes)),
		tasks.Lanes, "each rank of a full node adds up a share and carries it between nodes; a leader would do it all",
	},
	{
		when(sums, free, commutes, twoNodes, fits(tasks.AR)),
		tasks.AR, "two nodes exchange what each has, both ways at once",
	},
	{
		when(free, tiny, fewPeersAlone, not(star), fits(tasks.AR)),
		tasks.AR, "up to " + tasks.FormatBytes(tinyMessage) + " one exchange is faster than a reduce and a bcast",
	},
	{
		when(sums, free, commutes, small, moreNodes, fits(tasks.AR), not(star)),
		tasks.AR, "one exchange is faster than a reduce and a bcast, which take twice the steps",
	},
	{
		when(sums, free, commutes, either(halves, unfilled), fits(tasks.AR)),
		tasks.AR, "halving and doubling takes a logarithm of the steps of a ring of {nodes} nodes, which so few bytes don't fill",
	},
	{
		when(sums, free, commutes, large, moreNodes, fits(tasks.RSAG)),
		tasks.RSAG, "a ring between nodes carries 2(n-1)/n of the message, a reduce and a bcast twice the message",
	},
	{
		when(sums, free, commutes, pair, fits(tasks.RSAG)),
		tasks.RSAG, "each of two ranks combines a half, at the same time",
	},
	{
		when(sums, free, commutes, huge, team, fits(tasks.RSAG)),
		tasks.RSAG, "each rank combines a part, at the same time",
	},
	{
		when(unfit(tasks.Han), scans),
		tasks.Flat, "a scan takes nodes in their order: ranks must be numbered node by node, and combined in no forced order",
	},
	{
		when(unfit(tasks.Han), treeOrder),
		tasks.Flat, "groups here are not whole subtrees of the tree over ranks",
	},
	{
		when(unfit(tasks.Han)),
		tasks.Flat, "{op} is not commutative and ranks are not numbered node by node",
	},
	{
		when(exchanges, fullNodes, not(upToABlock(fullLeader)), not(twoNodes), lanesPay, fits(tasks.Lanes)),
		tasks.Lanes, "all ranks of a full node carry blocks of over " + tasks.FormatBytes(fullLeader) + " between nodes, one message for a rank in place of one for each pair",
	},
	{
		when(exchanges, fullNodes, twoNodes, not(upToABlock(fullLane))),
		tasks.Flat, "two full nodes: copies inside a node of blocks of over " + tasks.FormatBytes(fullLane) + " cost more than messages between pairs",
	},
	{
		when(exchanges, not(oneNode), severalRanks, fewPeers, leadersPay, fits(tasks.Han)),
		tasks.Han, "between nodes one message for a pair of nodes; a leader copies blocks of up to " + tasks.FormatBytes(leaderBlock) + " sooner than its ranks send messages",
	},
	{
		when(exchanges, not(oneNode), severalRanks, lanesPay, fits(tasks.Lanes)),
		tasks.Lanes, "between nodes one message for a rank in place of one for each pair; inside nodes blocks of up to " + tasks.FormatBytes(laneBlock) + " cost little",
	},
	{
		when(exchanges, not(oneNode)),
		tasks.Flat, "all speak with all: through leaders each block would cross the node twice more",
	},
	{nil, tasks.Han, "shared memory inside nodes, messages only between leaders"},
}
