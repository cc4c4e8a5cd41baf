package rule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Limits of the rule, bytes.
const (
	starMessage   = 1 << 10   // up to here a node can speak with all others, one after the other
	starBytes     = 3 << 10   // to all others together: more of them keep a slow wire busy
	tinyMessage   = 4 << 10   // up to here one exchange is worth its bytes
	smallMessage  = 16 << 10  // up to here latency counts: one segment, shallow trees
	sharedMessage = 128 << 10 // up to here many ranks of a node lose more by meeting twice than they win by sharing the work
	passedBlock   = 64        // of what one rank gives another: up to here others may pass it on
	leastHalved   = 12 << 10  // from here on halves are worth their messages
	leaderBlock   = 1 << 10   // of an alltoall: up to here one rank of a node may carry the blocks of all
	fullLeader    = 64        // the same of a full node, whose other ranks may carry as well
	fullLane      = 512       // between two full nodes: up to here a message costs more than a copy inside the node
	laneBlock     = 4 << 10   // of what one rank gives another: up to here a message costs more than a copy inside the node
	slotBlock     = 8 << 10   // of what one rank of a node gives another: from here on the kernel's one copy costs less than two of ours
	halvedMessage = 256 << 10 // up to here fewer steps are worth more than a pipeline
	filling       = 64 << 10  // for each node: from here on a chain or a ring of nodes is filled
	addedUp       = 6 << 10   // for each node: from here on a scan's chain of nodes is worth its hops
	filled        = 256 << 10 // for each node of one rank: the same, of chains beside round-optimal schedules
)

// Limits of the rule, ranks and nodes.
const (
	mostPeers    = 8  // ranks of a node that all exchange with all
	mostPartners = 16 // nodes that all exchange with all, be messages as short as they may
	mostSpokes   = 8  // nodes of which one speaks with all others
	fewRounds    = 8  // nodes up to which a round-optimal schedule has few rounds
	shortChain   = 4  // nodes that are a short chain or ring
	fewInside    = 4  // ranks of a node, on average: from here on each takes a share of what one would do alone
)

// Conditions on what is asked for.
var (
	free = condition{"no algorithm or order is forced", func(q *question) bool { return q.free }}

	sums   = asked(tasks.Allreduce)
	scans  = asked(tasks.Scan, tasks.Exscan)
	rooted = asked(tasks.Bcast, tasks.Reduce)

	exchanges = condition{tasks.Alltoall.String() + " is asked for", func(q *question) bool { return q.request.Exchanges() }}

	leadersPay = upToABlock(leaderBlock)
	lanesPay   = upToABlock(laneBlock)

	readsPay = condition{"over " + tasks.FormatBytes(slotBlock) + " a block", func(q *question) bool { return q.bytes > slotBlock*q.blocks }}

	// Blocks of a few bytes between many: a message costs far more than its bytes.
	passedOn = condition{
		"equal blocks of up to " + tasks.FormatBytes(passedBlock) + " in one group of more than " + strconv.Itoa(mostPartners) + " nodes",
		func(q *question) bool {
			return q.request.Matrix.IsZero() && q.bytes <= passedBlock*q.blocks && q.on.Nodes() > mostPartners && q.shape == tasks.Flat
		},
	}

	noData = condition{"a " + tasks.Barrier.String(), func(q *question) bool { return !q.request.Coll.HasData() }}

	commutes = condition{"the operation commutes", func(q *question) bool { return !q.ordered }}
	ordered  = condition{"the operation does not commute", func(q *question) bool { return q.ordered }}

	treeOrder = condition{"order=tree is forced", func(q *question) bool { return q.order == tasks.TreeOrder }}
	treeSum   = condition{"order=tree is forced on a reduction", func(q *question) bool {
		return q.order == tasks.TreeOrder && q.request.Reduces()
	}}

	rootElsewhere = condition{"the root is not rank 0", func(q *question) bool { return q.request.Root != 0 }}

	tiny  = condition{"up to " + tasks.FormatBytes(tinyMessage), func(q *question) bool { return q.bytes <= tinyMessage }}
	small = condition{"up to " + tasks.FormatBytes(smallMessage), func(q *question) bool { return q.bytes <= smallMessage }}

	huge  = condition{"over " + tasks.FormatBytes(sharedMessage), func(q *question) bool { return q.bytes > sharedMessage }}
	large = condition{"over " + tasks.FormatBytes(smallMessage), func(q *question) bool { return q.bytes > smallMessage }}

	blocks   = condition{"several blocks", func(q *question) bool { return q.blocks > 1 }}
	noBlocks = condition{"no blocks, or one", func(q *question) bool { return q.blocks == 1 }}
)

// Conditions on where the ranks are.
var (
	oneNode    = condition{"one node", func(q *question) bool { return q.on.Nodes() == 1 }}
	twoNodes   = condition{"two nodes", func(q *question) bool { return q.on.Nodes() == 2 }}
	moreNodes  = condition{"more than two nodes", func(q *question) bool { return q.on.Nodes() > 2 }}
	insideNode = condition{"inside a node", func(q *question) bool { return q.inside }}
	between    = condition{"between nodes", func(q *question) bool { return !q.inside }}

	pair = condition{"two ranks of one node, over " + tasks.FormatBytes(tinyMessage), func(q *question) bool {
		return q.on.Nodes() == 1 && q.on.Size() == 2 && q.bytes > tinyMessage
	}}

	team = condition{"one node of several ranks", func(q *question) bool { return q.on.Nodes() == 1 && q.on.Size() > 1 }}

	severalRanks = condition{"several ranks on a node", func(q *question) bool { return q.on.Size() > q.on.Nodes() }}

	// Several ranks of a node share what its leader would do alone.
	fullNodes = condition{"several nodes, " + strconv.Itoa(fewInside) + " ranks a node on average or more", func(q *question) bool {
		return q.on.Nodes() > 1 && q.on.Size() >= fewInside*q.on.Nodes()
	}}
	crowdedNodes = condition{"several nodes, more than " + strconv.Itoa(mostPeers) + " ranks a node on average", func(q *question) bool {
		return q.on.Nodes() > 1 && q.crowded()
	}}

	// All ranks of a node may exchange with all.
	fewPeers      = condition{"at most " + strconv.Itoa(mostPeers) + " ranks a node on average", func(q *question) bool { return !q.crowded() }}
	fewPeersAlone = condition{"several nodes, or one of at most " + strconv.Itoa(mostPeers) + " ranks", func(q *question) bool {
		return q.on.Nodes() > 1 || !q.crowded()
	}}

	// Goroutine ranks of a node read large messages where they lie: one copy in place of two.
	readable = condition{"goroutine ranks, over " + tasks.FormatBytes(tinyMessage), func(q *question) bool {
		return q.on.IsOneProcess() && q.bytes > tinyMessage
	}}
)

// Conditions on both.
var (
	// One node speaks with all others. Hops: the star 2, a tree 2 log n, an exchange of all
	// log n. Messages: the star 2(n-1), an exchange n log n. A small message costs the
	// processor more than the wire.
	star = condition{
		"3 to " + strconv.Itoa(mostSpokes) + " nodes, up to " + tasks.FormatBytes(starMessage) + ", " + tasks.FormatBytes(starBytes) + " to all others, no blocks",
		func(q *question) bool {
			n := q.on.Nodes()
			return 2 < n && n <= mostSpokes && q.bytes <= starMessage && q.bytes*int64(n-1) <= starBytes && !q.request.Blocks()
		},
	}

	// Halving and doubling takes a logarithm of a ring's steps, with the same bytes.
	halves = condition{
		"more than two nodes, a power of two, over " + tasks.FormatBytes(leastHalved) + ", up to " + tasks.FormatBytes(halvedMessage),
		func(q *question) bool {
			n := q.on.Nodes()
			return n > 2 && n&(n-1) == 0 && q.bytes > leastHalved && q.bytes <= halvedMessage
		},
	}
)

// Conditions on a chain or a ring of nodes.
var (
	// A chain has n-1 hops before its last node has anything, a ring 2(n-1). With too few
	// segments for so many nodes, most of the links stand idle most of the time.
	unfilled = condition{
		"more than " + strconv.Itoa(shortChain) + " nodes, over " + tasks.FormatBytes(tinyMessage) + ", less than " + tasks.FormatBytes(filling) + " × nodes",
		func(q *question) bool {
			n := q.on.Nodes()
			return n > shortChain && q.bytes > tinyMessage && q.bytes < filling*int64(n)
		},
	}

	// A round-optimal schedule has each node hear the message once, as a chain, and fewer hops.
	unfilledAlone = condition{
		"one rank on each of more than " + strconv.Itoa(shortChain) + " nodes, over " + tasks.FormatBytes(tinyMessage) + ", less than " + tasks.FormatBytes(filled) + " × nodes",
		func(q *question) bool {
			n := q.on.Nodes()
			return n > shortChain && q.on.Size() == n && q.bytes > tinyMessage && q.bytes < filled*int64(n)
		},
	}

	// Each round costs the processors a message. Between few nodes shorter segments save little
	// of what the first one takes to the last node.
	manyRounds = condition{"more than " + strconv.Itoa(fewRounds) + " nodes", func(q *question) bool { return q.on.Nodes() > fewRounds }}

	// A scan's chain hands on what each of its nodes adds, one after the other.
	farScan = condition{"less than " + tasks.FormatBytes(addedUp) + " × nodes", func(q *question) bool {
		return q.bytes < addedUp*int64(q.on.Nodes())
	}}

	fewHops = condition{"at most " + strconv.Itoa(shortChain) + " nodes, in shape " + tasks.Flat.String() + " ranks", func(q *question) bool {
		if q.shape == tasks.Flat {
			return q.on.Size() <= shortChain
		}
		return q.on.Nodes() <= shortChain
	}}

	powerOfTwo = condition{"a power of two of nodes", func(q *question) bool {
		n := q.on.Nodes()
		return n&(n-1) == 0
	}}

	alone = condition{"one rank a node", func(q *question) bool { return q.on.Size() == q.on.Nodes() }}

	manySpokes = condition{"more than " + strconv.Itoa(mostSpokes) + " nodes, up to " + tasks.FormatBytes(starMessage), func(q *question) bool {
		return q.on.Nodes() > mostSpokes && q.bytes <= starMessage
	}}
)

// inRounds are the conditions of round-optimal schedules, with more of them: a bcast or a
// reduce on its way between nodes, in segments that were cut for such schedules.
func inRounds(more ...condition) []condition {
	return append([]condition{rooted, free, commutes, either(unfilled, unfilledAlone), shaped(tasks.Han, tasks.Flat)}, more...)
}

// upTo holds for messages of up to so many bytes.
func upTo(bytes int64) condition {
	return condition{"up to " + tasks.FormatBytes(bytes), func(q *question) bool { return q.bytes <= bytes }}
}

// upToABlock holds for blocks of up to so many bytes on average.
func upToABlock(bytes int64) condition {
	return condition{"up to " + tasks.FormatBytes(bytes) + " a block", func(q *question) bool { return q.bytes <= bytes*q.blocks }}
}

// operation holds if the operation of the level is one of some.
func operation(some ...tasks.Collective) condition {
	names := make([]string, len(some))
	for i, c := range some {
		names[i] = c.String()
	}
	return condition{strings.Join(names, " or "), func(q *question) bool { return slices.Contains(some, q.op) }}
}

// asked holds if one of some collectives is asked for.
func asked(some ...tasks.Collective) condition {
	names := make([]string, len(some))
	for i, c := range some {
		names[i] = c.String()
	}
	return condition{strings.Join(names, " or ") + " is asked for", func(q *question) bool { return slices.Contains(some, q.request.Coll) }}
}

// fits holds if the collective has a shape, and the groups of ranks can have it.
func fits(s tasks.Shape) condition {
	return condition{"shape " + s.String() + " fits", func(q *question) bool {
		if !s.Fits(q.request.Coll) {
			return false
		}
		_, err := tasks.Hierarchy(q.request, q.on, tasks.Plan{Shape: s, Order: q.order})
		return err == nil
	}}
}

// unfit is the opposite of fits.
func unfit(s tasks.Shape) condition {
	return condition{"shape " + s.String() + " does not fit", not(fits(s)).holds}
}

// shaped holds if the plan has one of some shapes.
func shaped(some ...tasks.Shape) condition {
	names := make([]string, len(some))
	for i, s := range some {
		names[i] = s.String()
	}
	return condition{"shape " + strings.Join(names, ", "), func(q *question) bool { return slices.Contains(some, q.shape) }}
}

// either holds if one of two conditions does.
func either(a, b condition) condition {
	return condition{a.text + " or " + b.text, func(q *question) bool { return a.holds(q) || b.holds(q) }}
}

// crowded reports whether a node may have too many ranks for all to exchange with all.
func (q *question) crowded() bool { return q.on.Size() > mostPeers*q.on.Nodes() }
