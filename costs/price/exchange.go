package price

import (
	"math"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// exchange is a schedule in rounds. In each of them every rank of so many sends a message and
// hears one.
type exchange struct {
	group
	lanes float64 // groups of one rank of each node that do the same at the same time; 1 or more
	skew  float64 // how many times the mean part the largest one is; 1: all are equal
	pairs int     // so many ranks, a power of two, speak with those whose number differs in one bit; 0: they don't
	first Terms
	wired float64 // of the busiest wire, ns
	line  float64 // how long the last one waits for the wire in its first round, ns
	busy  Terms   // of one rank
}

// round adds a round of messages of n bytes to ranks so many places away, which are
// combined with others or not.
func (x *exchange) round(places int, n float64, combines bool) {
	l, lead, far := x.via(places)
	x.over(l, lead, far, n, combines)
}

// over is round over a link on which n bytes go without credit up to lead, and a node's wire
// carries far of the messages.
func (x *exchange) over(l *link, lead float64, far int, n float64, combines bool) {
	hop, share := l.both(n), float64(far)*x.lanes
	hop.Processor += x.step // the end of a round
	if n > lead {
		hop = hop.plus(l.credit())
	}
	if far == 0 {
		more := x.crowds(l, n)
		hop.Work += more
		x.busy.Work += more
	}
	x.busy.Processor += l.sends(n) + l.receives(n)
	x.wired += share * l.wire(n)
	if combines && n > 0 {
		hop.Work += x.step + x.combined(n)
		hop.Processor += x.step
		x.busy.Work += x.combined(n)
	}
	// Those that share a wire stand in line for it once. From then on each finds it free, as long
	// as it carries all of them in a round.
	wire, alone := l.wire(n), hop.sum()
	hop.Wire += max(0, share*wire-alone)
	x.line = max(x.line, min((share-1)*wire, alone-wire))
	x.first = x.first.plus(hop)
}

// crowds returns what a large message over a link inside a node takes more because all of its
// ranks copy at the same time.
func (x *exchange) crowds(l *link, n float64) float64 {
	if n <= x.eager {
		return 0
	}
	return max(0, 2*x.memory*float64(x.close)-l.SendByte) * n
}

// beside adds a message of n bytes to the last round, to ranks so many places away.
func (x *exchange) beside(places int, n float64) {
	l, _, far := x.via(places)
	busy, wire := l.sends(n)+l.receives(n), float64(far)*x.lanes*l.wire(n)
	x.first = x.first.plus(later(Terms{Wire: wire}, Terms{Processor: busy}))
	x.busy.Processor += busy
	x.wired += wire
}

// via returns the link to ranks so many places away, what goes there without credit, and
// how many messages of a node's ranks pass the node's wire at the same time.
func (x *exchange) via(places int) (l *link, lead float64, far int) {
	far = max(min(places, x.ranks, x.size-places), 1)
	switch {
	case x.size <= x.ranks:
		far = 0
	case x.ranks > 1 && x.pairs > 0:
		far = x.crossing(places)
	}
	if far == 0 {
		return x.near, x.early, 0
	}
	return x.link, x.lead, far
}

// crossing returns how many ranks of the busiest node speak with one of another node if each of
// the pairs' speaks with the one whose number among them differs in a bit.
func (x *exchange) crossing(bit int) int {
	folded := x.size - x.pairs // so many have handed over to the rank before them
	rank := func(i int) int { return min(i, folded) + i }
	return x.passed(func(yield func(from, to int) bool) {
		for i := 0; i < x.pairs && yield(rank(i), rank(i^bit)); i++ {
		}
	})
}

// combined returns what it takes to combine n bytes with others while all ranks of the node
// do so: two operands and the result pass the node's memory.
func (x *exchange) combined(n float64) float64 {
	return max(x.reduce, 3*x.memory*max(float64(x.ranks), x.lanes)) * n
}

// loads returns those of the rounds.
func (x *exchange) loads() stage {
	x.first.Wire += x.line
	s := stage{first: x.first, lag: x.first.sum()}
	s.alike(load{x.wired, x.wired, x.busy})
	s.total = float64(x.size) * s.root.busy.sum()
	return s
}

// stage returns the stage of an operation with results on all ranks.
func (x *exchange) stage(w *way, op tasks.Collective, n float64) (stage, bool) {
	if !w.goesWhole(n) || x.size < 2 {
		return stage{}, false
	}
	switch s := w.Schedule; {
	case s == submodules.CirculantGraph && op == tasks.Allreduce && n > 0:
		x.halve(n, 0)
		x.double(n, 0)
	case s == submodules.CirculantGraph && n == 0, s == submodules.DistanceDoubling && op == tasks.Allreduce:
		x.double(n, 0)
	case s == submodules.CirculantGraph && op == tasks.ReduceScatter, s == submodules.RecursiveHalving:
		x.halve(n, x.loose())
	case s == submodules.CirculantGraph, s == submodules.DistanceDoubling, s == submodules.RecursiveDoubling && op == tasks.Allgather:
		x.double(n, x.loose())
	case s == submodules.AroundRing:
		if op != tasks.Allgather {
			x.ring(n, true)
		}
		if op != tasks.ReduceScatter {
			x.ring(n, false)
		}
	case s == submodules.RecursiveDoubling:
		x.fold(n, true, func(members int) {
			for m := 1; m < members; m *= 2 {
				x.round(m, n, true)
			}
		})
	case s == submodules.NeighborExchange:
		x.neighbor(n)
	case s == submodules.HalvingDoubling:
		x.rabenseifner(n, true)
	case s == submodules.AllAtOnce:
		x.pairwise(n, op == tasks.ReduceScatter)
	default:
		return stage{}, false
	}
	return x.loads(), true
}

// fold adds the rounds of the largest power of two of members. If there are more ranks,
// one of every two neighbours hands over to the other one first, and may hear the result.
func (x *exchange) fold(n float64, back bool, rounds func(members int)) {
	members := 1 << int(math.Log2(float64(x.size)))
	if members < x.size {
		x.side(n, true)
	}
	x.pairs = members
	rounds(members)
	x.pairs = 0
	if members < x.size && back {
		x.side(n, false)
	}
}

// side is a round of messages between every two neighbours.
func (x *exchange) side(n float64, combines bool) {
	if x.ranks > 1 && x.ranks%2 == 0 { // no two of which are on other nodes
		x.over(x.near, x.early, 0, n, combines)
	} else {
		x.round(1, n, combines)
	}
}

// rabenseifner is a reduce-scatter by halving, then an allgather, or a gather: then those
// that were folded away get nothing back.
func (x *exchange) rabenseifner(n float64, back bool) {
	x.fold(n, back, func(members int) {
		for m := 1; m < members; m *= 2 {
			x.round(m, n/float64(2*m), true)
		}
		for m := members / 2; m >= 1; m /= 2 {
			x.round(m, n/float64(2*m), false)
		}
	})
}

// shares lists how many shards a rank sends in the rounds of a circulant graph, the most first.
func (x *exchange) shares() (all []int) {
	for skip := x.size; skip > 1; skip = (skip + 1) / 2 {
		all = append(all, skip-(skip+1)/2)
	}
	return all
}

// parts returns the bytes of so many of the x.size parts into which n bytes are cut, the largest among them.
func (x *exchange) parts(count int, n float64) float64 {
	return (float64(count-1) + x.skew) * n / float64(x.size)
}

// loose returns how many messages more there are than rounds where each shard is one.
func (x *exchange) loose() float64 { return float64(x.size - 1 - log2(x.size)) }

// halve is a reduce-scatter on a circulant graph, n bytes in all, in so many messages more than rounds.
func (x *exchange) halve(n, more float64) {
	left := x.size
	for _, k := range x.shares() {
		left -= k
		x.round(left, x.parts(k, n), true)
	}
	x.apart(n, more)
	x.first.Work += more * x.step
	x.busy.Work += more * x.step
}

// double is an allgather on it.
func (x *exchange) double(n, more float64) {
	all, far := x.shares(), 1
	for i := len(all) - 1; i >= 0; i-- {
		x.round(far, x.parts(all[i], n), false)
		far += all[i]
	}
	x.apart(n, more)
}

// apart adds the time of so many more messages of shards, without their bytes.
func (x *exchange) apart(n, more float64) {
	part := n / float64(x.size)
	wire, send := x.wire(part)-x.Byte*part, x.sends(part)-x.SendByte*part
	x.first.Processor += more * max(wire, send)
	x.wired += more * wire
	x.busy.Processor += more * (send + x.receives(part) - x.RecvByte*part)
}

// ring goes round once, n bytes in all: combines in a reduce-scatter. A node's ranks pass
// parts on between them before one does to the next node, so a part's way is the links' mean.
// It takes no less than the busiest processor or wire does for it.
func (x *exchange) ring(n float64, combines bool) {
	part, rounds := x.parts(1, n), float64(x.size-1) // the largest one goes round, too
	hop, busiest, wire := x.both(part), x.sends(part)+x.receives(part), x.lanes*x.wire(part)
	if x.ranks > 1 {
		share := 1 / float64(x.ranks)
		busiest = max(x.near.sends(part)+x.receives(part), x.sends(part)+x.near.receives(part))
		if x.size <= x.ranks {
			share, wire, busiest = 0, 0, x.near.sends(part)+x.near.receives(part)
		}
		if part > x.lead {
			hop = hop.plus(x.credit())
		}
		hop = x.near.both(part).times(1 - share).plus(hop.times(share))
	}
	hop = later(later(hop, Terms{Processor: busiest}), Terms{Wire: wire})
	passes := 2.0 // of a byte through the node's memory: a copy
	if combines { // a rank after the other
		adds := x.step + x.combined(part)
		hop.Work += adds
		x.busy.Work += rounds * adds
		passes += 3
	}
	if x.close > 1 { // a node's ranks do so at the same time
		hop = later(hop, work(passes*x.memory*float64(x.close)*part))
	}
	x.first = x.first.plus(hop.times(rounds))
	x.wired += rounds * wire
	x.busy.Processor += rounds * busiest
}

// neighbor is an allgather in rounds of two parts, with one side after the other.
func (x *exchange) neighbor(n float64) {
	part, two := x.parts(1, n), x.parts(2, n)
	x.round(1, part, false)
	for i := 1; i < x.size/2; i++ {
		switch {
		case x.size <= x.ranks || x.ranks > 1 && x.ranks%2 == 0 && i%2 == 0:
			x.over(x.near, x.early, 0, two, false)
		case x.ranks == 1 || x.ranks%2 == 1:
			x.over(x.link, x.lead, 1, two, false)
		default: // at both ends of a node
			x.over(x.link, x.lead, 2, two, false)
		}
	}
	x.apart(n, float64(x.size/2-1))
}

// pairwise is an exchange of all with all in one round.
func (x *exchange) pairwise(n float64, combines bool) {
	part := x.parts(1, n) // to the largest node's leader, or from it
	x.everybody(part)
	if combines {
		others := float64(x.size - 1)
		x.first.Work += others * (x.step + x.combined(part))
		x.busy.Work += others * x.combined(part)
	}
}

// everybody is a message of n bytes from each rank to each other one, at once.
func (x *exchange) everybody(n float64) {
	inside := float64(min(x.ranks, x.size) - 1)
	others := float64(x.size-1) - inside
	sends, busy := others*x.sends(n), others*(x.sends(n)+x.receives(n)) // a rank sends before it looks at what has come
	if inside > 0 {
		sends += inside * x.near.sends(n)
		busy += inside * (x.near.sends(n) + x.near.receives(n))
	}
	last, lead := x.link, x.lead
	if others == 0 {
		last, lead = x.near, x.early
	}
	hop, wire := last.hop(n), x.lanes*float64(x.ranks)*others*x.wire(n)
	if n > lead {
		hop = hop.plus(last.credit())
	}
	more := max(sends, hop.sum()-last.receives(n)) + busy - sends - hop.sum()
	x.first = x.first.plus(hop).plus(later(Terms{Wire: max(0, wire-last.wire(n))}, Terms{Processor: max(0, more)}))
	x.wired += wire
	x.busy.Processor += busy
}
