package plans

import (
	"slices"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/tasks"
)

// Segments of rivals, bytes. Pieces go from node to node, and large ones are for round-optimal schedules.
var (
	whole          = []int64{tasks.Whole}
	pieces         = []int64{builtin.Packed(8 << 10), builtin.Packed(16 << 10), builtin.Packed(32 << 10), builtin.Packed(64 << 10), builtin.Packed(128 << 10), builtin.Packed(256 << 10), builtin.Packed(512 << 10)}
	piecesAndWhole = slices.Concat(pieces, whole)
	large          = []int64{builtin.Packed(128 << 10), builtin.Packed(256 << 10), builtin.Packed(512 << 10), 1 << 20}
)

// Conditions of the nodes.
var (
	sharing    condition = func(c *entry) bool { return c.on.Size() > c.nodes }          // messages of nodes and of ranks differ
	several    condition = func(c *entry) bool { return c.nodes > 2 }                    // else all trees are one message
	chains     condition = func(c *entry) bool { return c.nodes > 8 }                    // enough for more than one chain
	linearRoot condition = func(c *entry) bool { return c.nodes <= builtin.LinearRanks } // a root may feed them one by one
)

// Conditions of the ranks in the group of the algorithm between nodes.
var (
	few      condition = func(c *entry) bool { return c.ranks <= 64 } // all may speak with all others at once, in parts of a collective
	many     condition = func(c *entry) bool { return !few(c) }
	oneByOne condition = func(c *entry) bool { return c.ranks <= 256 } // a root may speak with each, or each with all others one by one
	crowd    condition = func(c *entry) bool { return !oneByOne(c) }
	power    condition = func(c *entry) bool { return c.ranks&(c.ranks-1) == 0 }
	even     condition = func(c *entry) bool { return c.ranks%2 == 0 }
	flat     condition = func(c *entry) bool { return c.shape == tasks.Flat }
)

// Conditions of the segment. If all ranks of a node speak with others at once, ranks with small parts of
// a segment hold their node up. So does a leader with many small messages.
var (
	uncut         condition = func(c *entry) bool { return c.segment == tasks.Whole }
	short         condition = func(c *entry) bool { return c.segment <= 64<<10 }
	long          condition = func(c *entry) bool { return c.segment > 64<<10 }
	full          condition = func(c *entry) bool { return c.segment >= builtin.Packed(64<<10) } // a part of a smaller one is all overhead
	feedsNodes    condition = func(c *entry) bool { return (c.bytes+c.segment-1)/c.segment >= int64(c.nodes) }
	feedsRanks    condition = func(c *entry) bool { return c.bytes/c.segment >= int64(c.on.Size()) }
	fitsFlat      condition = func(c *entry) bool { return c.segment >= builtin.Packed(8<<10)*int64(c.on.Size()) }
	fitsLane      condition = func(c *entry) bool { return c.segment >= builtin.Packed(32<<10)*int64(c.on.Size()/c.nodes) }
	cutsRing      condition = func(c *entry) bool { return ringOfNodes(c) < 2*c.bytes } // a ring has more than one
	cutsRingOfAll condition = func(c *entry) bool { return ringOfRanks(c) < 2*c.bytes }
	largeParts    condition = func(c *entry) bool { return !sharing(c) || full(c) }
	ofBlock       condition = func(c *entry) bool { return c.request.Bytes() > builtin.CutFrom && c.segment < c.request.Bytes() }
	ofPart        condition = func(c *entry) bool { return ofBlock(c) && c.segment >= c.least() }
	ringPart      condition = func(c *entry) bool {
		ring := ringOfNodes(c)
		return c.request.Bytes() > builtin.CutFrom && ring < c.bytes && ring/c.blocks >= c.least()
	}
)

// least returns how much of a block a segment has, bytes.
func (c *entry) least() int64 {
	if c.shape == tasks.Han && sharing(c) {
		return builtin.Packed(64 << 10)
	}
	return 1 << 10
}

// everyRank are algorithms for an allreduce of all ranks, or of lanes.
const everyRank = "nbc/recdoubling nbc/rabenseifner circulant/blocks adapt/ring"

// competitors are the rivals by collective, in the order of [Rivals].
var competitors = map[tasks.Collective][]stanza{
	tasks.Bcast: slices.Concat(
		rootedStanzas("nbc/knomial nbc/knomial//8", several),
		pipelines,
		[]stanza{
			{whole, []row{
				of(tasks.FlatSAG, 1, "is=adapt/linear,iag=adapt/ring is=adapt/linear,iag=circulant/blocks", oneByOne),
				of(tasks.FlatSAG, 1, "is=nbc/binomial,iag=adapt/ring is=nbc/binomial,iag=circulant/blocks", crowd),
			}},
			{piecesAndWhole, []row{
				of(tasks.SAG, 4, "is=adapt/linear,iag=adapt/ring", few, full),
				of(tasks.SAG, 4, "is=nbc/binomial,iag=adapt/ring", few, uncut),
				of(tasks.SAG, 4, "is=adapt/linear,iag=circulant/blocks", few, full),
				of(tasks.SAG, 4, "is=nbc/binomial,iag=circulant/blocks", few, uncut),
				of(tasks.SAG, 4, "is=adapt/linear,iag=adapt/linear", few, full),
				of(tasks.SAG, 4, "is=nbc/binomial,iag=adapt/linear", few, uncut),
				of(tasks.SAG, 4, "is=nbc/binomial,iag=adapt/ring is=nbc/binomial,iag=circulant/blocks", many, full),
			}},
		},
		flatRooted("nbc/knomial nbc/knomial//8"),
	),
	tasks.Reduce: slices.Concat(
		rootedStanzas("nbc/rabenseifner"),
		pipelines,
		flatRooted("nbc/rabenseifner", of(tasks.Flat, linkWindow, "nbc/rabenseifner", long)),
	),
	tasks.Allreduce: slices.Concat(
		[]stanza{
			{whole, []row{
				of(tasks.AR, 4, everyRank+" nbc/recdoubling//4 nbc/recdoubling//8"),
				of(tasks.Han, 4, "nbc/linear", linearRoot),
				of(tasks.Han, 4, "adapt/binomial adapt/binomial//4"),
				of(tasks.Han, 4, "", func(c *entry) bool { return c.bytes >= 2<<10 }),
			}},
			{pieces, []row{
				of(tasks.AR, linkWindow, "nbc/recdoubling nbc/rabenseifner circulant/blocks", full),
				ofRing(tasks.RSAG, ringOfNodes, cutsRing),
			}},
		},
		pipelines,
		[]stanza{
			{piecesAndWhole, []row{
				of(tasks.RSAG, 4, "irs=nbc/pairwise,iag=adapt/linear irs=adapt/direct,iag=adapt/linear", full, few),
				of(tasks.FlatAR, linkWindow, everyRank, full, fitsFlat),
				of(tasks.Lanes, linkWindow, everyRank, full, fitsLane),
			}},
			{pieces, []row{
				of(tasks.Flat, linkWindow, "adapt/chain", feedsRanks),
				ofRing(tasks.FlatRSAG, ringOfRanks, cutsRingOfAll),
			}},
			{whole, []row{
				of(tasks.FlatRSAG, 1, "adapt/ring"),
				of(tasks.FlatRSAG, 1, "irs=nbc/pairwise,iag=adapt/linear", oneByOne),
			}},
		},
	),
	tasks.Allgather:     slices.Concat(gathers(tasks.Han), gathers(tasks.Flat)),
	tasks.ReduceScatter: slices.Concat(scatters(tasks.Han), scatters(tasks.Flat)),
	tasks.Gather:        spokes,
	tasks.Scatter:       spokes,
	tasks.Alltoall:      slices.Concat(exchanges(tasks.Flat), exchanges(tasks.Lanes), exchanges(tasks.Han)),
	tasks.Barrier: {{whole, []row{
		of(tasks.AR, 4, "nbc/dissemination nbc/dissemination//4 nbc/dissemination//8 nbc/recdoubling"),
		of(tasks.Han, 4, "nbc/linear", linearRoot),
	}}},
}

// rootedStanzas returns trees of whole messages for a bcast or a reduce, with choices of its own.
func rootedStanzas(own string, when ...condition) []stanza {
	return []stanza{{whole, []row{
		of(tasks.Han, 4, "adapt/binomial"),
		of(tasks.Han, 4, "adapt/binomial//4 adapt/binary adapt/binary//3 adapt/binary//4", several),
		of(tasks.Han, 4, "nbc/linear adapt/linear", several, few),
		of(tasks.Han, 4, own, when...),
		of(tasks.Han, 4, ""),
	}}}
}

// flatRooted is rooted for all ranks as one group, whole and cut.
func flatRooted(own string, cut ...row) []stanza {
	return []stanza{
		{whole, []row{
			of(tasks.Flat, 4, "adapt/binomial adapt/binomial//4 adapt/binary//3 "+own),
			of(tasks.Flat, 4, ""),
		}},
		{pieces, append([]row{
			of(tasks.Flat, linkWindow, "adapt/chain adapt/kchain//2", feedsRanks),
			of(tasks.Flat, linkWindow, "adapt/binary", short),
		}, cut...)},
	}
}

// pipelines are trees of flowing segments, and round-optimal schedules of large segments if a node's
// other ranks would wait for a whole one.
var pipelines = []stanza{
	{pieces, []row{
		of(tasks.Han, linkWindow, "adapt/binomial"),
		of(tasks.Han, linkWindow, "adapt/binary", several),
		of(tasks.Han, linkWindow, "adapt/chain", several, feedsNodes),
		of(tasks.Han, linkWindow, "adapt/kchain adapt/kchain//2 adapt/kchain//8", chains),
	}},
	{large, []row{of(tasks.Han, 4, "", sharing)}},
}

// gathers returns the plans of an allgather.
func gathers(shape tasks.Shape) []stanza {
	return parts(shape, []row{
		of(shape, 4, "nbc/bruck"),
		of(shape, 4, "nbc/recdoubling", power),
		of(shape, 4, "nbc/neighbor", even),
		of(shape, 4, "adapt/linear nbc/linear", few),
	}, []row{
		of(shape, ringWindow, "nbc/neighbor", ofPart, flat, even),
		of(shape, ringWindow, "adapt/linear nbc/linear", ofPart, few),
	})
}

// scatters returns the plans of a reduce-scatter.
func scatters(shape tasks.Shape) []stanza {
	return parts(shape, []row{
		of(shape, 4, "nbc/pairwise", oneByOne),
		of(shape, 4, "adapt/direct", few),
		of(shape, 4, "nbc/halving", power),
	}, []row{
		of(shape, ringWindow, "circulant/blocks", ofPart, flat),
	})
}

// parts returns plans with a part of the data for each rank: rings and others.
func parts(shape tasks.Shape, uncut, cut []row) []stanza {
	return []stanza{
		{whole, append([]row{of(shape, 4, "adapt/ring circulant/blocks")}, uncut...)},
		{pieces, append([]row{ofRing(shape, ringOfNodes, ringPart), of(shape, ringWindow, "adapt/ring", ofPart)}, cut...)},
	}
}

// spokes are the plans of a gather or a scatter.
var spokes = []stanza{
	{whole, []row{
		of(tasks.Han, 4, "nbc/binomial"),
		of(tasks.Han, 4, "adapt/linear nbc/linear", oneByOne),
		of(tasks.Flat, 4, "nbc/binomial"),
		of(tasks.Flat, 4, "adapt/linear nbc/linear", oneByOne),
	}},
	{pieces, []row{
		of(tasks.Han, ringWindow, "nbc/binomial", ofBlock),
		of(tasks.Han, ringWindow, "adapt/linear nbc/linear", ofBlock, oneByOne),
		of(tasks.Flat, ringWindow, "nbc/binomial", ofBlock),
		of(tasks.Flat, ringWindow, "adapt/linear nbc/linear", ofBlock, oneByOne),
	}},
}

// exchanges returns the plans of an alltoall. A linear one sends all blocks of a rank at the same time.
func exchanges(shape tasks.Shape) []stanza {
	uncut := []row{
		of(shape, 4, "adapt/pairwise nbc/pairwise"),
		of(shape, 4, "adapt/linear nbc/linear", oneByOne),
	}
	if shape != tasks.Lanes {
		uncut = append(uncut, of(shape, 4, "nbc/bruck nbc/bruck//4 nbc/bruck//8"))
	}
	return []stanza{{whole, uncut}, {pieces, []row{
		of(shape, linkWindow, "adapt/pairwise nbc/pairwise", ofBlock, largeParts),
		of(shape, linkWindow, "adapt/linear nbc/linear", ofBlock, largeParts, oneByOne),
	}}}
}
