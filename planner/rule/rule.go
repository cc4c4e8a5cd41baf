// Package rule chooses plans without measurements: by the collective, its size and the
// layout of the ranks. It also outlines what a plan has to choose for.
//
// It never measures and reads no table. Equal arguments give equal plans, on all ranks.
//
//	plan, why := rule.Choose(request, topology, tasks.Plan{})
package rule

import (
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Sizes of the built-in rule, bytes.
const (
	starMessage   = 1 << 10   // up to here a node can speak with all others, one after the other
	tinyMessage   = 4 << 10   // up to here one exchange is worth its bytes
	smallMessage  = 16 << 10  // up to here latency counts: one segment, shallow trees
	halvedMessage = 256 << 10 // up to here fewer steps are worth more than a pipeline
	InsideSegment = 128 << 10 // inside a node: a segment stays in a core's cache
	readSegment   = 256 << 10 // of what is read where it lies, which costs two meetings
	ChainMost     = 64 << 10  // between nodes: larger segments only delay the pipeline
	ChainLeast    = 16 << 10
	ringMost      = 256 << 10 // between nodes: what each sends on at once
	ringUsual     = 64 << 10
	ringLeast     = 32 << 10
	leastPart     = 1 << 10 // of a block: smaller ones are all overhead
)

// mostPeers is up to how many ranks of a node all exchange with all.
const mostPeers = 8

// mostSpokes is up to how many nodes one of them speaks with all others.
const mostSpokes = 8

// Choose returns the plan while there are no measurements, and why. It follows HAN's
// reasoning (section III): shared memory inside nodes, event-driven trees between
// them, a chain or a ring once there are enough segments to fill it, and no
// hierarchy where it would break the order of a non-commutative operation. It fits
// the shape and the order that forced asks for, and chooses for the tasks that the
// shape has. Inside a node large messages go through shared memory, or are read where
// they lie if the topology says that the ranks are of one process.
func Choose(r tasks.Request, t *levels.Topology, forced tasks.Plan) (tasks.Plan, []string) {
	u := rule{request: r, on: t, order: forced.Order, bytes: r.AllBytes(t.Size()), blocks: 1, ordered: r.Reduces() && !r.Op.Commutative()}
	if r.Blocks() {
		u.blocks = int64(t.Size())
	}
	if r.Counts.Len() > 0 && r.Count > 0 {
		u.blocks = (u.bytes + r.Bytes() - 1) / r.Bytes()
	}
	p := tasks.Plan{Shape: u.shape(forced), Order: forced.Order}
	p.Segment, p.Window = u.segments(p.Shape)
	g, err := Outline(r, t, p)
	if err != nil {
		return p, u.why // a forced shape that doesn't fit; compiling says so
	}
	for k := range g.On.Depth() {
		p = u.level(p, KindsAt(g, k), g.On.WithinNodes(k))
	}
	return p, u.why
}

// rule gathers what the choices depend on, and the reasons given for them.
type rule struct {
	request tasks.Request
	on      *levels.Topology
	bytes   int64 // of all blocks
	blocks  int64 // how many of the largest size make up these bytes, at least 1
	order   tasks.Order
	ordered bool // the operation doesn't commute
	why     []string
}

func (u *rule) because(format string, args ...any) {
	u.why = append(u.why, fmt.Sprintf(format, args...))
}

func (u *rule) small() bool { return u.bytes <= smallMessage }

// pair tells whether there are two nodes: then one exchange carries no byte more than
// a ring does, and a chain has no inner nodes.
func (u *rule) pair() bool { return u.on.Nodes() == 2 }

// star tells whether one node speaks with all others: two hops there and back, where a
// tree has a logarithm of the nodes each way and an exchange of all a logarithm in all,
// but n log n messages to the star's 2(n-1). Each costs a processor more than the wire.
func (u *rule) star() bool {
	n := u.on.Nodes()
	return 2 < n && n <= mostSpokes && u.bytes <= starMessage && !u.request.Blocks()
}

// halves tells whether an allreduce between nodes does best by halving and doubling: in
// a logarithm of the steps of a ring, with the same bytes, if the nodes are a power of two.
func (u *rule) halves() bool {
	n := u.on.Nodes()
	return n > 2 && n&(n-1) == 0 && !u.small() && u.bytes <= halvedMessage
}

// crowded tells whether a node may have too many ranks for all to exchange with all.
func (u *rule) crowded() bool { return u.on.Size() > mostPeers*u.on.Nodes() }

// reads tells whether ranks of a node read large messages where they lie, with one copy
// in place of two: they can if they are goroutines.
func (u *rule) reads() bool { return u.on.IsOneProcess() && u.bytes > tinyMessage }

// shape is the forced one, or the one that the rule prefers: han where algorithms
// are forced, which may not do what other shapes ask for.
func (u *rule) shape(forced tasks.Plan) tasks.Shape {
	if forced.Shape != 0 {
		return forced.Shape
	}
	fits := func(s tasks.Shape) bool {
		_, err := tasks.Hierarchy(u.request, u.on, tasks.Plan{Shape: s, Order: u.order})
		return err == nil
	}
	free := len(forced.Keys()) == 0 && u.order == tasks.AnyOrder
	sum := u.request.Coll == tasks.Allreduce && free && !u.ordered
	exchange := u.bytes <= tinyMessage && (u.on.Nodes() > 1 || !u.crowded()) && !u.star()
	switch {
	case sum && u.pair() && fits(tasks.AR):
		u.because("shape=ar: two nodes exchange what each has, both ways at once")
		return tasks.AR
	case free && exchange && tasks.AR.Fits(u.request.Coll) && fits(tasks.AR):
		u.because("shape=ar: up to %s one exchange is faster than a reduce and a bcast", tasks.FormatBytes(tinyMessage))
		return tasks.AR
	case sum && u.halves() && fits(tasks.AR):
		u.because("shape=ar: up to %s between %d nodes halving and doubling takes fewer steps than a ring", tasks.FormatBytes(halvedMessage), u.on.Nodes())
		return tasks.AR
	case sum && !u.small() && u.on.Nodes() > 2 && fits(tasks.RSAG):
		u.because("shape=rsag: a ring between nodes carries 2(n-1)/n of the message, a reduce and a bcast twice the message")
		return tasks.RSAG
	case !fits(tasks.Han) && u.order == tasks.TreeOrder:
		u.because("shape=flat: groups here are not whole subtrees of the tree over ranks")
		return tasks.Flat
	case !fits(tasks.Han):
		u.because("shape=flat: %v is not commutative and ranks are not numbered node by node", u.request.Op)
		return tasks.Flat
	}
	u.because("shape=han: shared memory inside nodes, messages only between leaders")
	return tasks.Han
}

// Segments on their way at once, the window: where a link is to be kept busy, and in a
// ring, where each node both sends and receives. There few are enough, and more
// would stand in the link's queue before the credits and acknowledgements of what comes
// the other way.
const (
	fewSegments  = 4
	linkSegments = 8
	ringSegments = 3
)

// segments is the size of a segment, of each block if there are blocks, and how many
// are on their way at once.
func (u *rule) segments(s tasks.Shape) (size int64, window int) {
	size = InsideSegment
	switch nodes, n := int64(u.on.Nodes()), u.blocks; {
	case u.small():
		u.because("fs=all: up to %s latency counts", tasks.FormatBytes(smallMessage))
		return tasks.Whole, fewSegments
	case nodes == 1 && u.reads():
		size = readSegment
		u.because("fs=%s: goroutines of one node read each other's memory", tasks.FormatBytes(size))
	case nodes == 1 && n == 1:
		u.because("fs=%s: one node, segments stay in cache", tasks.FormatBytes(size))
	case nodes == 1:
		u.because("fs=%s of each block: one node, segments stay in cache", tasks.FormatBytes(size))
	case s == tasks.AR && u.halves():
		u.because("fs=all: halving cuts the message itself")
		return tasks.Whole, fewSegments
	case u.pair() && n == 1 && s != tasks.RSAG && s != tasks.Lanes:
		size = Packed(size)
		u.because("fs=%s: two nodes, no pipeline to fill between them", tasks.FormatBytes(size))
	case n > 1 || s == tasks.RSAG || s == tasks.Lanes || s == tasks.AR:
		piece := u.ringPiece()
		size = max(piece*nodes/n, leastPart)
		u.because("fs=%s: each of %d nodes sends up to %s on at once", tasks.FormatBytes(size), nodes, tasks.FormatBytes(piece))
		if !u.pair() {
			return size, ringSegments
		}
	default:
		size = Packed(near(u.bytes/128, ChainLeast, ChainMost))
		u.because("fs=%s: a 128th of the message or near, so that filling a pipeline of %d nodes takes little", tasks.FormatBytes(size), nodes)
	}
	if u.on.Nodes() == 1 {
		return size, fewSegments
	}
	return size, linkSegments
}

// ringPiece is what a node of a ring sends on at once. A few of them should keep a link
// busy, and the larger the message is, the less does a step that waits for one cost.
func (u *rule) ringPiece() int64 {
	if u.pair() {
		return Packed(InsideSegment) // no node hands on
	}
	return Packed(near(max(u.bytes/64, min(u.bytes/16, ringUsual)), ringLeast, ringMost))
}

// near is the power of two up to n, between two of them.
func near(n, least, most int64) int64 {
	for least < most && 2*least <= n {
		least *= 2
	}
	return least
}

// Packed is a sixteenth less, so that a segment and the header of its frame fill
// whole packets: devices take up to 64 KiB at once, or a power of two that divides
// it. A full power of two leaves a rest that costs as much as a packet.
func Packed(n int64) int64 { return n - n/16 }

// level chooses for the tasks of a level: in one word where they are done alike.
func (u *rule) level(p tasks.Plan, kinds []tasks.Kind, inside bool) tasks.Plan {
	var first tasks.Choice
	for i, kind := range kinds {
		c := u.choice(kind.Op, inside)
		if i == 0 {
			first = c
			p = p.Set(string(kind.Symbol), c)
		} else if c != first {
			p = p.Set(kind.String(), c)
		}
	}
	return p
}

// choice is who does an operation, and how.
func (u *rule) choice(op tasks.Collective, inside bool) tasks.Choice {
	adapt := func(name string) tasks.Choice { return tasks.Choice{Submodule: "adapt", Algorithm: name} }
	nbc := func(name string) tasks.Choice { return tasks.Choice{Submodule: "nbc", Algorithm: name} }
	tree := u.order == tasks.TreeOrder && u.request.Reduces()
	switch {
	case tree && op == tasks.Reduce:
		return adapt("inorderbinomial")
	case tree && op == tasks.ReduceScatter:
		return nbc("nonoverlapping")
	case op == tasks.Reduce && u.ordered && u.request.Root != 0:
		return adapt("inorderbinary") // it keeps the order of ranks, whichever leads
	case inside && u.bytes <= tinyMessage && !u.crowded():
		return tasks.Choice{Submodule: "sm", Algorithm: "rings"}
	case op == tasks.Allreduce && (u.small() || u.pair() && !u.ordered):
		return nbc("recdoubling")
	case op == tasks.Allreduce && (u.ordered || u.halves() && !inside):
		return nbc("rabenseifner")
	case op == tasks.Allreduce:
		return adapt("ring")
	case inside && u.reads():
		return tasks.Choice{Submodule: "solo"}
	case inside:
		return tasks.Choice{Submodule: "sm"}
	case op == tasks.Gather, op == tasks.Scatter:
		return adapt("linear") // a block crosses each level once
	case op == tasks.Allgather && u.small():
		return nbc("bruck")
	case op == tasks.ReduceScatter && (u.small() || u.ordered):
		return nbc("pairwise")
	case op == tasks.Allgather, op == tasks.ReduceScatter:
		return adapt("ring")
	case u.star() && !inside:
		return nbc("linear")
	case u.small() || u.on.Nodes() == 1:
		return adapt("binomial")
	}
	return adapt("chain")
}
