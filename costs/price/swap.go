package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// swapStage returns a phase of an alltoall of blocks of n bytes. A message is all that a rank has for
// another one in its phase: in lanes the blocks of a node's place, in levels those of a node.
func (p *Pricer) swapStage(o *outline, ph *phase, w way, n float64) (stage, bool) {
	nodes, each, pieces, lanes := float64(p.on.Nodes()), float64(p.together), 1.0, 1.0
	all := o.on.Depth() == 1 || p.on.Size() == p.on.Nodes() // with all
	switch {
	case all:
	case p.together < 2 || o.on.Depth() > 2:
		return stage{}, false
	case o.shape == tasks.Lanes && ph.inside:
		pieces = nodes
	case o.shape == tasks.Lanes:
		lanes, pieces = each, each
	case ph.inside:
		pieces = nodes * each
	default:
		pieces = each * each
	}
	g, ok := p.groupOf(o, ph, w, float64(p.request.Bytes())*pieces)
	if !ok {
		return stage{}, false
	}
	s := newShare(&g, &w, pieces*n)
	switch {
	case !ph.inside || s == nil:
		return (&exchange{group: g, lanes: lanes, skew: 1}).swapStage(&w, n, pieces)
	case o.shape == tasks.Han && !all: // its leader gathers or scatters
		return s.stage(ph.Kind.Op)
	default:
		return s.swapAll(pieces, n), true
	}
}

// swapStage returns the stage of an alltoall of messages of so many pieces of n bytes.
func (x *exchange) swapStage(w *way, n, pieces float64) (stage, bool) {
	message := pieces * n
	if !w.goesWhole(message) || x.size < 2 {
		return stage{}, false
	}
	switch w.Schedule {
	case submodules.AllAtOnce, submodules.StarTree: // its leader is as busy as all would be
		x.addEverybody(message)
		x.addPacking(n, pieces)
		// Beyond so many partners messages come before they are expected, and are kept.
		if more := x.size - 1 - w.AtOnce; w.AtOnce > 0 && more > 0 && message <= x.lead {
			x.addOwn(work(float64(more) * 2 * x.copyTime(message)))
		}
	case submodules.OneByOne:
		x.addOneByOne(message)
		x.addPacking(n, pieces)
	case submodules.DistanceDoubling:
		x.addBruck(max(w.number, 2), message)
	default:
		return stage{}, false
	}
	x.addOwn(work(pieces * x.copyTime(n)))
	return x.stageOfRounds(), true
}

// addPacking adds copying the pieces of the messages to all others together, and apart. In a large
// message each piece is one.
func (x *exchange) addPacking(n, pieces float64) {
	messages := float64(x.size - 1)
	switch {
	case pieces == 1:
	case pieces*n > submodules.PackMost:
		x.addOwn(Terms{Processor: messages * (pieces - 1) * (x.sendTime(0) + x.recvTime(0))})
	default:
		x.addOwn(work(2 * messages * pieces * x.copyTime(n)))
	}
}

// addOneByOne adds a message to each other rank, one after the other. Of an odd number of ranks one
// has no partner in each round.
func (x *exchange) addOneByOne(n float64) {
	rounds := 1 + float64(x.size%2)/float64(x.size-1)
	for _, p := range x.others(x.lanes) {
		hop := p.bothWays(n)
		hop.Processor += x.step
		hop = later(p.withCredit(hop, n), Terms{Wire: p.share * p.wireTime(n)})
		x.first = x.first.plus(hop.times(p.count * rounds))
		x.wired += float64(p.count * rounds * p.share * p.wireTime(n))
		x.busy.Processor += float64(p.count * (p.sendTime(n) + p.recvTime(n)))
	}
}

// addBruck adds Bruck's rounds: blocks of n bytes go by the digits of their way in a radix. Each is
// copied into a message and out of it, and to its place in the end.
func (x *exchange) addBruck(radix int, n float64) {
	for unit, values := range submodules.Digits(x.size, radix) {
		for digit := 1; digit < values; digit++ {
			period := unit * radix
			blocks := float64(x.size/period*unit + min(max(0, x.size%period-digit*unit), unit))
			if digit == 1 {
				x.addRound(digit*unit, blocks*n, false)
			} else { // beside the others of the round
				x.addBeside(digit*unit, blocks*n)
			}
			x.addOwn(work(blocks * x.copyTime(n)))
		}
	}
	x.addOwn(work(float64(x.size-1) * x.copyTime(n)))
}
