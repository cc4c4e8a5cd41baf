package tasks

// rows tells the collectives apart, by collective.
//
//	                  way of a segment through the levels
//	bcast, sag        ib sb, is iag sb
//	reduce            sr ir
//	allreduce         sr ir ib sb
//	  ar, rsag, lanes sr iar sb, sr irs iag sb, srs iar sag
//	  flat-…          as above, of one level
//	gather, scatter   sg ig, is ss
//	allgather         sg iag sb
//	reducescatter     sr irs ss
//	alltoall          sg ia ss
//	  lanes           sa ia; in the second one all ranks are one group
//	barrier           as allreduce
//	scan, exscan      sx iex sp, sex iex sp; each group is led by its last rank
//	neighbors         in, from each rank straight to its peers
var rows = []Row{
	Bcast: {
		Name: "bcast", Suffix: "b", Doc: "copies the root's message to all ranks",
		Input: Side{TheRoot, Vector}, Output: Side{AllRanks, Vector}, From: RootsData, Values: 1, Placement: OnlyRecv,
		Recipe: Recipe{Top: []Collective{Bcast}, Down: Bcast},
		Shapes: map[Shape]Recipe{
			SAG:     {Top: []Collective{Scatter, Allgather}, Down: Bcast},
			FlatSAG: {Top: []Collective{Scatter, Allgather}},
		},
	},
	Reduce: {
		Name: "reduce", Suffix: "r", Doc: "combines all ranks' messages, element by element, at the root",
		Input: Side{AllRanks, Vector}, Output: Side{TheRoot, Vector}, From: CombinedData, Values: 1, Placement: InRecv,
		Recipe: Recipe{Up: Reduce, Top: []Collective{Reduce}},
		Alone:  Reduce,
	},
	Allreduce: {
		Name: "allreduce", Suffix: "ar", Doc: "combines all ranks' messages, element by element, on all ranks",
		Input: Side{AllRanks, Vector}, Output: Side{AllRanks, Vector}, From: CombinedData, Values: 1, Placement: InRecv,
		BusTrips: 2,
		Recipe:   reduceAndBcast,
		Shapes: map[Shape]Recipe{
			Rotate: reduceAndBcast,
			AR:     exchangeOnTop,
			RSAG:   {Up: Reduce, Top: []Collective{ReduceScatter, Allgather}, Down: Bcast},
			FlatAR: {Top: []Collective{Allreduce}}, FlatRSAG: {Top: []Collective{ReduceScatter, Allgather}},
			Lanes: {
				Up: ReduceScatter, Top: []Collective{Allreduce}, Down: Allgather,
				Single: []Collective{ReduceScatter, Allgather}, // the ranks of one node are all lanes
			},
		},
		Alone: Reduce,
	},
	Allgather: {
		Name: "allgather", Suffix: "ag", Doc: "collects all ranks' blocks on all ranks",
		Input: Side{AllRanks, OwnBlock}, Output: Side{AllRanks, AllBlocks}, From: OwnersData, Values: 1, Placement: InRecv, Counts: true,
		BusTrips: 1,
		Recipe:   Recipe{Up: Gather, Top: []Collective{Allgather}, Down: Bcast},
		Alone:    Allgather,
	},
	Gather: {
		Name: "gather", Suffix: "g", Doc: "collects all ranks' blocks at the root",
		Input: Side{AllRanks, OwnBlock}, Output: Side{TheRoot, AllBlocks}, From: OwnersData, Values: 1, Placement: InRecv, Counts: true,
		BusTrips: 1,
		Recipe:   Recipe{Up: Gather, Top: []Collective{Gather}},
		Alone:    Gather,
	},
	Scatter: {
		Name: "scatter", Suffix: "s", Doc: "gives each rank its block of the root's",
		Input: Side{TheRoot, AllBlocks}, Output: Side{AllRanks, OwnBlock}, From: RootsData, Values: 1, Placement: InSend, Counts: true,
		BusTrips: 1,
		Recipe:   Recipe{Top: []Collective{Scatter}, Down: Scatter},
		Alone:    Scatter,
	},
	ReduceScatter: {
		Name: "reducescatter", Suffix: "rs", Doc: "combines all ranks' messages, and gives each rank its block of the result",
		Input: Side{AllRanks, AllBlocks}, Output: Side{AllRanks, OwnBlock}, From: CombinedData, Values: 1, Placement: InRecv, Counts: true,
		BusTrips: 1,
		Recipe:   Recipe{Up: Reduce, Top: []Collective{ReduceScatter}, Down: Scatter},
		Alone:    ReduceScatter,
	},
	Alltoall: {
		Name: "alltoall", Suffix: "a", Doc: "gives each rank its block of every rank's",
		Input: Side{AllRanks, AllBlocks}, Output: Side{AllRanks, AllBlocks}, From: OwnersData, Values: 1, Placement: InRecv, Matrix: true,
		BusTrips: 1,
		Recipe:   Recipe{Up: Gather, Top: []Collective{Alltoall}, Down: Scatter},
		Shapes:   map[Shape]Recipe{Lanes: {Up: Alltoall, Top: []Collective{Alltoall}}},
		Alone:    Alltoall,
	},
	Barrier: {
		Name: "barrier", Doc: "waits until all ranks have come",
		Input: Side{AllRanks, Nothing}, Output: Side{AllRanks, Nothing}, From: NoSource, Placement: OnlyRecv,
		Recipe: reduceAndBcast,
		Shapes: map[Shape]Recipe{AR: exchangeOnTop, FlatAR: {Top: []Collective{Allreduce}}},
	},
	Scan: {
		Name: "scan", Suffix: "x", Doc: "combines the messages of each rank and those before it, element by element",
		Input: Side{AllRanks, Vector}, Output: Side{AllRanks, Vector}, From: PrefixThrough, Values: 2, Placement: InRecv,
		Recipe: Recipe{First: Scan, Up: Exscan, Top: []Collective{Exscan}, Down: Prefix, Single: []Collective{Scan}},
		Alone:  Scan,
	},
	Exscan: {
		Name: "exscan", Suffix: "ex", Doc: "combines the messages of the ranks before each, element by element; rank 0 gets nothing",
		Input: Side{AllRanks, Vector}, Output: Side{AllRanks, Vector}, From: PrefixBelow, Values: 3, Placement: InRecv,
		Recipe: Recipe{Up: Exscan, Top: []Collective{Exscan}, Down: Prefix},
	},
	Prefix: {
		Name: "prefix", Suffix: "p", Doc: "combines what its leader has of ranks before the group with what each rank of it has",
		Input: Side{AllRanks, Vector}, Output: Side{AllRanks, Vector}, From: PrefixThrough, Values: 1, Placement: InRecv,
	},
	Neighbors: {
		Name: "neighbors", Suffix: "n", Doc: "gives each rank's peers a block each, and takes one from each",
		Input: Side{AllRanks, AllBlocks}, Output: Side{AllRanks, AllBlocks}, From: OwnersData, Values: 1, Placement: Apart, Matrix: true,
		BusTrips: 1, Straight: true,
		Recipe: Recipe{Top: []Collective{Neighbors}},
		Alone:  Neighbors,
	},
}

// Recipes of several collectives.
var (
	reduceAndBcast = Recipe{Up: Reduce, Top: []Collective{Reduce, Bcast}, Down: Bcast}
	exchangeOnTop  = Recipe{Up: Reduce, Top: []Collective{Allreduce}, Down: Bcast}
)
