package fixed

import "github.com/tierflow/tierflow/tasks"

// tunedTables are the thresholds of coll_tuned_decision_fixed.c, for commuting
// operations: bytes of the message, or of a block.
var tunedTables = map[tasks.Collective]decisions{
	tasks.Allgather:     tunedAllgather,
	tasks.Allreduce:     tunedAllreduce,
	tasks.Alltoall:      tunedAlltoall,
	tasks.Bcast:         tunedBcast,
	tasks.Gather:        tunedGather,
	tasks.Reduce:        tunedReduce,
	tasks.ReduceScatter: tunedReduceScatterBlock,
	tasks.Scatter:       tunedScatter,
}

var tunedAllreduce = decisions{
	{4, []step{{8, ring}, {4096, recursiveDoubling}, {8192, ring}, {16384, recursiveDoubling}, {65536, ring}, {262144, segmentedRing}, {rest, rabenseifner}}},
	{8, []step{{16, ring}, {8192, recursiveDoubling}, {rest, rabenseifner}}},
	{16, []step{{8192, recursiveDoubling}, {rest, rabenseifner}}},
	{32, []step{{64, segmentedRing}, {4096, recursiveDoubling}, {rest, rabenseifner}}},
	{64, []step{{128, segmentedRing}, {rest, rabenseifner}}},
	{128, []step{{262144, recursiveDoubling}, {rest, rabenseifner}}},
	{256, []step{{131072, nonOverlapping}, {262144, recursiveDoubling}, {rest, rabenseifner}}},
	{512, []step{{4096, nonOverlapping}, {rest, rabenseifner}}},
	{2048, []step{{2048, nonOverlapping}, {16384, recursiveDoubling}, {rest, rabenseifner}}},
	{4096, []step{{2048, nonOverlapping}, {4096, segmentedRing}, {16384, recursiveDoubling}, {rest, rabenseifner}}},
	{anyRanks, []step{{2048, nonOverlapping}, {16384, segmentedRing}, {32768, recursiveDoubling}, {rest, rabenseifner}}},
}

var tunedAlltoall = decisions{
	{3, []step{{2, pairwise}, {4, twoProc}, {16, pairwise}, {64, twoProc}, {256, pairwise}, {4096, twoProc}, {32768, pairwise}, {262144, linearSync}, {1048576, twoProc}, {rest, pairwise}}},
	{8, []step{{8192, linearSync}, {16384, linear}, {65536, linearSync}, {524288, linear}, {1048576, pairwise}, {rest, linear}}},
	{16, []step{{262144, linearSync}, {rest, linear}}},
	{32, []step{{4, linearSync}, {512, modifiedBruck}, {8192, linearSync}, {32768, linear}, {262144, linearSync}, {524288, linear}, {rest, linearSync}}},
	{64, []step{{512, modifiedBruck}, {524288, linear}, {rest, linearSync}}},
	{128, []step{{1024, modifiedBruck}, {2048, linear}, {4096, linearSync}, {262144, linear}, {rest, pairwise}}},
	{256, []step{{1024, modifiedBruck}, {2048, linearSync}, {262144, linear}, {rest, pairwise}}},
	{512, []step{{1024, modifiedBruck}, {8192, linearSync}, {32768, linear}, {rest, pairwise}}},
	{1024, []step{{512, modifiedBruck}, {8192, linearSync}, {16384, linear}, {131072, linearSync}, {262144, linear}, {rest, pairwise}}},
	{2048, []step{{512, modifiedBruck}, {1024, linearSync}, {2048, linear}, {16384, linearSync}, {262144, linear}, {rest, linearSync}}},
	{4096, []step{{1024, modifiedBruck}, {4096, linearSync}, {8192, linear}, {131072, linearSync}, {rest, linear}}},
	{anyRanks, []step{{2048, modifiedBruck}, {8192, linearSync}, {16384, linear}, {32768, linearSync}, {65536, linear}, {rest, linearSync}}},
}

var tunedBcast = decisions{
	{4, []step{{32, pipeline}, {256, binary}, {512, pipeline}, {1024, knomial}, {32768, linear}, {131072, binary}, {262144, chain}, {524288, linear}, {1048576, binomial}, {rest, binary}}},
	{8, []step{{64, binary}, {128, binomial}, {2048, binary}, {8192, binomial}, {1048576, linear}, {rest, chain}}},
	{16, []step{{8, knomial}, {64, binary}, {4096, knomial}, {16384, binary}, {32768, binomial}, {rest, linear}}},
	{32, []step{{4096, knomial}, {1048576, binomial}, {rest, scatterAllgather}}},
	{64, []step{{2048, binomial}, {rest, knomial}}},
	{128, []step{{rest, knomial}}},
	{256, []step{{2, binomial}, {16384, binary}, {32768, linear}, {65536, binary}, {rest, knomial}}},
	{1024, []step{{16384, knomial}, {32768, splitBinary}, {rest, knomial}}},
	{2048, []step{{524288, knomial}, {rest, scatterAllgather}}},
	{4096, []step{{262144, knomial}, {rest, scatterAllgather}}},
	{anyRanks, []step{{8192, knomial}, {16384, binary}, {262144, knomial}, {rest, scatterAllgather}}},
}

var tunedReduce = decisions{
	{4, []step{{8, rabenseifner}, {16, binary}, {32, pipeline}, {262144, linear}, {524288, pipeline}, {1048576, chain}, {rest, pipeline}}},
	{8, []step{{4096, binary}, {65536, chain}, {262144, binomial}, {524288, linear}, {1048576, binomial}, {rest, linear}}},
	{16, []step{{8192, binary}, {rest, binomial}}},
	{32, []step{{4096, binary}, {rest, binomial}}},
	{256, []step{{rest, binomial}}},
	{512, []step{{8192, binomial}, {16384, inOrderBinary}, {rest, binomial}}},
	{2048, []step{{rest, binomial}}},
	{4096, []step{{512, binomial}, {1024, inOrderBinary}, {8192, binomial}, {16384, inOrderBinary}, {rest, binomial}}},
	{anyRanks, []step{{16, binomial}, {32, inOrderBinary}, {1024, binomial}, {2048, inOrderBinary}, {8192, binomial}, {16384, inOrderBinary}, {rest, binomial}}},
}

var tunedReduceScatterBlock = decisions{
	{4, []step{{4, recursiveDoubling}, {8, butterfly}, {16, recursiveHalving}, {128, butterfly}, {256, recursiveHalving}, {4096, butterfly}, {8192, recursiveHalving}, {131072, butterfly}, {rest, linear}}},
	{8, []step{{8, recursiveHalving}, {32, recursiveDoubling}, {256, butterfly}, {8192, recursiveHalving}, {16384, butterfly}, {1048576, recursiveHalving}, {rest, linear}}},
	{16, []step{{4, linear}, {32, recursiveHalving}, {128, butterfly}, {524288, recursiveHalving}, {4194304, linear}, {rest, butterfly}}},
	{32, []step{{32, linear}, {524288, recursiveHalving}, {2097152, linear}, {4194304, recursiveHalving}, {rest, butterfly}}},
	{anyRanks, []step{{4, recursiveHalving}, {16, linear}, {65536, butterfly}, {262144, linear}, {rest, butterfly}}},
}

var tunedAllgather = decisions{
	{3, []step{{rest, twoProc}}},
	{32, []step{{rest, recursiveDoubling}}},
	{64, []step{{1024, recursiveDoubling}, {65536, neighbor}, {rest, ring}}},
	{128, []step{{512, recursiveDoubling}, {65536, neighbor}, {rest, ring}}},
	{256, []step{{512, recursiveDoubling}, {131072, neighbor}, {524288, ring}, {1048576, neighbor}, {rest, ring}}},
	{512, []step{{32, recursiveDoubling}, {128, bruck}, {1024, recursiveDoubling}, {131072, neighbor}, {524288, ring}, {1048576, neighbor}, {rest, ring}}},
	{1024, []step{{64, recursiveDoubling}, {256, bruck}, {2048, recursiveDoubling}, {rest, neighbor}}},
	{2048, []step{{4, recursiveDoubling}, {8, bruck}, {16, recursiveDoubling}, {32, bruck}, {256, recursiveDoubling}, {512, bruck}, {4096, recursiveDoubling}, {rest, neighbor}}},
	{4096, []step{{32, bruck}, {128, recursiveDoubling}, {512, bruck}, {4096, recursiveDoubling}, {rest, neighbor}}},
	{anyRanks, []step{{2, recursiveDoubling}, {8, bruck}, {16, recursiveDoubling}, {512, bruck}, {4096, recursiveDoubling}, {rest, neighbor}}},
}

var tunedGather = decisions{
	{4, []step{{2, linearSync}, {4, linear}, {32768, binomial}, {65536, linear}, {131072, binomial}, {rest, linearSync}}},
	{8, []step{{1024, binomial}, {8192, linear}, {32768, binomial}, {262144, linear}, {rest, linearSync}}},
	{256, []step{{rest, binomial}}},
	{512, []step{{2048, binomial}, {8192, linear}, {rest, binomial}}},
	{anyRanks, []step{{rest, binomial}}},
}

var tunedScatter = decisions{
	{4, []step{{2, linearNB}, {131072, linear}, {262144, linearNB}, {rest, linear}}},
	{8, []step{{2048, binomial}, {4096, linear}, {8192, binomial}, {32768, linear}, {1048576, linearNB}, {rest, linear}}},
	{16, []step{{16384, binomial}, {1048576, linearNB}, {rest, linear}}},
	{32, []step{{16384, binomial}, {32768, linear}, {rest, linearNB}}},
	{64, []step{{512, binomial}, {8192, linearNB}, {16384, binomial}, {rest, linearNB}}},
	{anyRanks, []step{{512, binomial}, {rest, linearNB}}},
}
