package rule

import "github.com/tierflow/tierflow/tasks"

// Sizes of segments, bytes. Package tune searches around them.
const (
	InsideSegment = 128 << 10 // inside a node: a segment stays in a core's cache
	ChainMost     = 64 << 10  // between nodes: larger segments only delay the pipeline
	ChainLeast    = 16 << 10
	readSegment   = 256 << 10 // of data read in place, which costs two meetings
	sharedPart    = 256 << 10 // of each rank of a node where ranks share the work: each meets all others twice
	readShared    = 512 << 10 // the same of data read in place
	sharedMost    = 4 << 20   // of all those parts
	leastHalf     = 16 << 10  // inside a node: a half or a quarter of a message, so that one is written while one is read
	pairHalf      = 32 << 10  // between two ranks: shorter pieces are not written past the caches
	pairSegment   = 64 << 10  // of what one rank gives another: larger ones make the others on the link wait; in place so much waits for each partner
	blockSegment  = 64 << 10  // of a block that is gathered or scattered between nodes
	nodeSegment   = 256 << 10 // between two nodes, where nobody hands on: of larger ones a reduce adds nothing while they arrive
	leastChained  = 2 << 20   // up to here segments between nodes are the smallest
	ringMost      = 256 << 10 // between nodes: what each sends on at once
	ringUsual     = 64 << 10
	ringLeast     = 32 << 10
	leastPart     = 1 << 10 // of a block: smaller ones are all overhead

	roundsMost   = 4 << 20   // of a message that is cut by inner segments: more is memory
	waitedMost   = 1 << 20   // the same, where a node's other ranks wait for a segment
	waitedLeast  = 128 << 10 // smaller ones pay for the rounds of each
	halvingPiece = 256 << 10 // of a message whose halves are exchanged
)

// Segments on their way at once, the window: where a link is to be kept busy, and in a
// ring, where each node both sends and receives. There few are enough. More would stand
// in the link's queue before the credits and acknowledgements of the other direction.
const (
	fewSegments  = 4
	linkSegments = 8
	ringSegments = 3
	// A rank that waits for a processor finds several segments when it has one, and sends
	// them on together.
	manySegments = 32
	pairSegments = 8
)

// cut is how a message is cut into segments, each block of it if there are blocks.
type cut struct {
	text    string                  // the size in words
	segment func(q *question) int64 // bytes; [tasks.Whole]: it isn't cut
	window  int                     // segments on their way at once
	unit    string                  // what Explain adds to the size; empty: nothing
}

// cuts are the rows that choose the size of segments and the window.
var cuts = []row[cut]{
	{
		when(small),
		uncut, "up to " + tasks.FormatBytes(smallMessage) + " latency counts",
	},
	{
		when(oneNode, shaped(tasks.RSAG), readable),
		shared(readShared), "goroutines of one node read each other's memory, all at the same time",
	},
	{
		when(oneNode, shaped(tasks.RSAG)),
		shared(sharedPart), "one node, all ranks at work at the same time",
	},
	{
		when(oneNode, readable),
		fixed(readSegment, fewSegments), "goroutines of one node read each other's memory",
	},
	{
		when(oneNode, exchanges, readsPay),
		cut{tasks.FormatBytes(readSegment), fixed(readSegment, fewSegments).segment, fewSegments, " of each block"},
		"one node, ranks read each other's blocks",
	},
	{
		when(pair, noBlocks),
		cut{
			"a quarter, or half up to " + tasks.FormatBytes(pairHalf) + ", " + tasks.FormatBytes(leastHalf) + " to " + tasks.FormatBytes(InsideSegment),
			func(q *question) int64 {
				return near(max(q.bytes/4, min(q.bytes/2, pairHalf)), leastHalf, InsideSegment)
			},
			pairSegments, "",
		},
		"two ranks: one writes a quarter while the other reads one; a slot has left the reader's cache before it is written again",
	},
	{
		when(oneNode, noBlocks),
		cut{
			"half, " + tasks.FormatBytes(leastHalf) + " to " + tasks.FormatBytes(InsideSegment),
			func(q *question) int64 { return near(q.bytes/2, leastHalf, InsideSegment) }, fewSegments, "",
		},
		"one node: one half is written while the other is read; segments stay in cache",
	},
	{
		when(oneNode),
		cut{tasks.FormatBytes(InsideSegment), fixed(InsideSegment, fewSegments).segment, fewSegments, " of each block"},
		"one node, segments stay in cache",
	},
	{
		when(exchanges),
		fixed(Packed(pairSegment), fewSegments), "each pair of ranks has several segments on the wire",
	},
	{
		when(asked(tasks.Gather, tasks.Scatter), not(oneNode)),
		fixed(Packed(blockSegment), linkSegments), "each pair of ranks that speak has several segments on the wire",
	},
	{
		when(asked(tasks.Allgather, tasks.ReduceScatter), commutes, either(unfilled, fullNodes)),
		cut{"all, at most " + tasks.FormatBytes(roundsMost) + " / blocks", func(q *question) int64 {
			if q.bytes <= roundsMost {
				return tasks.Whole
			}
			return max(roundsMost/q.blocks, leastPart)
		}, fewSegments, ""},
		"a logarithm of steps, which segments would multiply",
	},
	{
		inRounds(alone),
		cut{"all, at most " + tasks.FormatBytes(roundsMost), func(q *question) int64 {
			if q.bytes <= roundsMost {
				return tasks.Whole
			}
			return roundsMost
		}, fewSegments, ""},
		"inner segments cut it: too few to fill a chain of {nodes} nodes",
	},
	{
		inRounds(),
		cut{"near a quarter, " + tasks.FormatBytes(waitedLeast) + " to " + tasks.FormatBytes(waitedMost), func(q *question) int64 {
			return near(q.bytes/4, waitedLeast, waitedMost)
		}, fewSegments, ""},
		"inner segments cut it for {nodes} nodes; a node's ranks get one segment while the next arrives",
	},
	{
		when(shaped(tasks.AR, tasks.FlatAR), either(halves, unfilled), upTo(halvedMessage)),
		uncut, "halving cuts the message itself",
	},
	{
		when(shaped(tasks.AR, tasks.FlatAR), unfilled),
		fixed(Packed(halvingPiece), linkSegments), "one segment is combined while another is on its way",
	},
	{
		when(twoNodes, noBlocks, not(shaped(tasks.RSAG, tasks.FlatRSAG, tasks.Lanes))),
		fixed(Packed(nodeSegment), linkSegments), "two nodes, no pipeline to fill between them",
	},
	{
		when(either(blocks, shaped(tasks.RSAG, tasks.FlatRSAG, tasks.Lanes, tasks.AR, tasks.FlatAR)), twoNodes),
		ringCut(linkSegments), "each of {nodes} nodes sends up to {piece} on at once",
	},
	{
		when(either(blocks, shaped(tasks.RSAG, tasks.FlatRSAG, tasks.Lanes, tasks.AR, tasks.FlatAR))),
		ringCut(ringSegments), "each of {nodes} nodes sends up to {piece} on at once",
	},
	{
		when(alone, upTo(leastChained)),
		fixed(Packed(ChainLeast), manySegments), "small segments, so that filling a pipeline of {nodes} nodes takes little; many of them are sent on together where links are fast",
	},
	{
		when(asked(tasks.Bcast), not(fullNodes), upTo(leastChained)),
		fixed(Packed(ChainLeast), manySegments), "small segments, so that filling a pipeline of {nodes} nodes takes little; a leader that has a processor sends many of them on before the others of its node copy them",
	},
	{
		nil,
		cut{
			"near a 128th, " + tasks.FormatBytes(Packed(ChainLeast)) + " to " + tasks.FormatBytes(Packed(ChainMost)),
			func(q *question) int64 { return Packed(near(q.bytes/128, ChainLeast, ChainMost)) }, linkSegments, "",
		},
		"a 128th of the message or near, so that filling a pipeline of {nodes} nodes takes little",
	},
}

// uncut leaves a message whole.
var uncut = fixed(tasks.Whole, fewSegments)

// fixed cuts into segments of so many bytes.
func fixed(bytes int64, window int) cut {
	return cut{text: tasks.FormatBytes(bytes), segment: func(*question) int64 { return bytes }, window: window}
}

// shared cuts so that each rank of the one node has a part of so many bytes.
func shared(part int64) cut {
	return cut{
		text: "ranks × " + tasks.FormatBytes(part) + ", at most " + tasks.FormatBytes(sharedMost), window: fewSegments,
		segment: func(q *question) int64 { return min(int64(q.on.Size())*part, sharedMost) },
	}
}

// ringCut cuts so that each node sends on a [question.ringPiece] at once.
func ringCut(window int) cut {
	return cut{text: "{piece} × nodes / blocks", window: window, segment: func(q *question) int64 {
		return max(q.ringPiece()*int64(q.on.Nodes())/q.blocks, leastPart)
	}}
}

// ringPiece returns what a node of a ring sends on at once. A few of them should keep a
// link busy. The larger the message is, the less does a step cost that waits for one.
func (q *question) ringPiece() int64 {
	if q.on.Nodes() == 2 {
		return Packed(nodeSegment) // no node hands on
	}
	return Packed(near(max(q.bytes/64, min(q.bytes/16, ringUsual)), ringLeast, ringMost))
}

// near returns the power of two up to n, between two of them.
func near(n, least, most int64) int64 {
	for least < most && 2*least <= n {
		least *= 2
	}
	return least
}

// Packed returns a sixteenth less than n, so that a segment and the header of its frame
// fill whole packets: devices take up to 64 KiB at once, or a power of two that divides
// it. A full power of two leaves a rest that costs as much as a packet.
func Packed(n int64) int64 { return n - n/16 }
