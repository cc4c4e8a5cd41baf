package price

import (
	"slices"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// exchange is a schedule in rounds. In each of them every rank of the group sends a message and
// hears one.
type exchange struct {
	group
	lanes float64 // groups of one rank of each node, all busy at the same time; 1 or more
	skew  float64 // imbalance: the largest part over the mean; 1: all are equal
	pairs int     // hypercube: its size, a power of two; rank r's partner is r XOR places; 0: it is none
	first Terms
	wired float64 // transfer time on the busiest wire, ns
	line  float64 // queueing delay at the busiest node's wire in the first round, of the last rank, ns
	busy  Terms   // of one rank
}

// stage returns the stage of an operation with results on all ranks.
func (x *exchange) stage(w *way, op tasks.Collective, n float64) (stage, bool) {
	if !w.goesWhole(n) || x.size < 2 {
		return stage{}, false
	}
	shards := float64(x.size - 1 - log2(x.size)) // more messages than rounds, where each shard is one
	switch s := w.Schedule; {
	case s == submodules.CirculantGraph && op == tasks.Allreduce && n > 0:
		x.addCirculant(n, 0, true)
		x.addCirculant(n, 0, false)
	case s == submodules.DistanceDoubling && op == tasks.Allreduce:
		for unit, values := range submodules.Digits(x.size, max(w.number, 2)) {
			x.addDigit(unit, values, n, false)
		}
	case s == submodules.CirculantGraph && n == 0:
		x.addCirculant(n, 0, false)
	case s == submodules.CirculantGraph && op == tasks.ReduceScatter, s == submodules.RecursiveHalving:
		x.addCirculant(n, shards, true)
	case s == submodules.CirculantGraph, s == submodules.DistanceDoubling, s == submodules.RecursiveDoubling && op == tasks.Allgather:
		x.addCirculant(n, shards, false)
	case s == submodules.AroundRing:
		if op != tasks.Allgather {
			x.addRing(n, true)
		}
		if op != tasks.ReduceScatter {
			x.addRing(n, false)
		}
	case s == submodules.RecursiveDoubling:
		x.addFolded(n, true, func(members int) {
			for unit, values := range submodules.Digits(members, submodules.PowerOfTwo(max(w.number, 2))) {
				x.addDigit(unit, values, n, true)
			}
		})
	case s == submodules.NeighborExchange:
		x.addNeighbors(n)
	case s == submodules.HalvingDoubling:
		x.addRabenseifner(n, true)
	case s == submodules.AllAtOnce:
		x.addPairwise(n, op == tasks.ReduceScatter)
	default:
		return stage{}, false
	}
	return x.stageOfRounds(), true
}

// stageOfRounds returns the stage of all rounds until now.
func (x *exchange) stageOfRounds() stage {
	x.first.Wire += x.line
	return stageOfEqual(x.first, load{x.wired, x.wired, x.busy}, float64(x.size))
}

// addRound adds a round of messages of n bytes to ranks so many places away. Receivers combine them
// with others or not.
func (x *exchange) addRound(places int, n float64, combines bool) {
	l, far := x.linkTo(places)
	x.addOver(l, far, n, combines)
}

// addOver adds a round over a link. A node's wire carries far of the messages.
func (x *exchange) addOver(l *link, far int, n float64, combines bool) {
	hop, share := l.bothWays(n), float64(float64(far)*x.lanes)
	hop.Processor += x.step // the end of a round
	hop = l.withCredit(hop, n)
	if far == 0 {
		more := x.crowdTime(l, n)
		hop.Work += more
		x.busy.Work += more
	}
	x.busy.Processor += l.sendTime(n) + l.recvTime(n)
	x.wired += float64(share * l.wireTime(n))
	if combines && n > 0 {
		hop.Work += x.step + x.crowdedCombine(n)
		hop.Processor += x.step
		x.busy.Work += x.crowdedCombine(n)
	}
	// Ranks on one wire stand in line for it once. From then on each finds it free, as long as it
	// carries all their messages in a round.
	wire, alone := l.wireTime(n), hop.sum()
	hop.Wire += max(0, float64(share*wire)-alone)
	x.line = max(x.line, min(float64((share-1)*wire), alone-wire))
	x.first = x.first.plus(hop)
}

// addDigit adds a round of messages of n bytes to all ranks that differ in a digit of [submodules.Digits].
func (x *exchange) addDigit(unit, values int, n float64, combines bool) {
	x.addRound(unit, n, combines)
	for digit := 2; digit < values; digit++ {
		x.addBeside(digit*unit, n)
		if combines && n > 0 {
			x.addOwn(Terms{Work: x.step + x.crowdedCombine(n), Processor: x.step})
		}
	}
}

// addBeside adds a message of n bytes to the last round, to ranks so many places away.
func (x *exchange) addBeside(places int, n float64) {
	l, far := x.linkTo(places)
	busy, wire := l.sendTime(n)+l.recvTime(n), float64(float64(far)*x.lanes*l.wireTime(n))
	x.first = x.first.plus(later(Terms{Wire: wire}, Terms{Processor: max(l.sendTime(n), l.recvTime(n))}))
	x.busy.Processor += busy
	x.wired += wire
}

// addOwn adds time in which each rank does something without others.
func (x *exchange) addOwn(t Terms) { x.first, x.busy = x.first.plus(t), x.busy.plus(t) }

// crowdTime returns how much longer a large message inside a node takes because all its ranks copy at
// the same time.
func (x *exchange) crowdTime(l *link, n float64) float64 {
	if n <= x.eager {
		return 0
	}
	return float64(max(0, float64(2*x.memory*float64(x.close))-l.SendByte) * n)
}

// crowdedCombine returns what it takes to combine n bytes with others while all ranks of the node
// do so: two operands and the result pass the node's memory.
func (x *exchange) crowdedCombine(n float64) float64 {
	return float64(max(x.reduce, 3*x.memory*max(float64(x.ranks), x.lanes)) * n)
}

// linkTo returns the link to ranks so many places away, and how many messages of a node's ranks
// pass the node's wire at the same time.
func (x *exchange) linkTo(places int) (l *link, far int) {
	far = max(min(places, x.ranks, x.size-places), 1)
	switch {
	case x.isInside():
		far = 0
	case x.ranks > 1 && x.pairs > 0:
		far = x.countCrossing(places)
	}
	if far == 0 {
		return x.near, 0
	}
	return x.link, far
}

// countCrossing returns how many ranks of the busiest node speak with one of another node, if a rank's partner is
// the exclusive or of its number and places.
func (x *exchange) countCrossing(places int) int {
	folded := x.size - x.pairs // so many have handed over to the rank before them
	rank := func(i int) int { return min(i, folded) + i }
	return x.countPassed(func(yield func(from, to int) bool) {
		for i := 0; i < x.pairs && yield(rank(i), rank(i^places)); i++ {
		}
	})
}

// addFolded adds the rounds of the largest power of two of members. If there are more ranks,
// one of every two neighbours hands over to the other one first, and may hear the result.
func (x *exchange) addFolded(n float64, back bool, rounds func(members int)) {
	members := submodules.PowerOfTwo(x.size)
	if members < x.size {
		x.addFolding(n, true)
	}
	x.pairs = members
	rounds(members)
	x.pairs = 0
	if members < x.size && back {
		x.addFolding(n, false)
	}
}

// addFolding adds a round of messages between every two neighbours.
func (x *exchange) addFolding(n float64, combines bool) {
	if x.hasWholePairs() {
		x.addOver(x.near, 0, n, combines)
	} else {
		x.addRound(1, n, combines)
	}
}

// addRabenseifner adds a reduce-scatter by halving, then an allgather, or a gather: then the
// folded ranks get nothing back.
func (x *exchange) addRabenseifner(n float64, back bool) {
	x.addFolded(n, back, func(members int) {
		for m := 1; m < members; m *= 2 {
			x.addRound(m, n/float64(2*m), true)
		}
		for m := members / 2; m >= 1; m /= 2 {
			x.addRound(m, n/float64(2*m), false)
		}
	})
}

// addCirculant adds a reduce-scatter on a circulant graph, n bytes in all, or an allgather on it:
// the same rounds the other way. There are so many messages more than rounds.
func (x *exchange) addCirculant(n, more float64, combines bool) {
	type round struct{ places, shards int }
	var all []round // the farthest first
	for skip := x.size; skip > 1; skip = (skip + 1) / 2 {
		half := (skip + 1) / 2
		all = append(all, round{half, skip - half})
	}
	if !combines {
		slices.Reverse(all)
	}
	for _, r := range all {
		x.addRound(r.places, x.partBytes(r.shards, n), combines)
	}
	x.addMessages(n, more)
	if combines {
		x.addOwn(work(more * x.step))
	}
}

// partBytes returns the bytes of so many of the x.size parts into which n bytes are cut, the largest among them.
func (x *exchange) partBytes(count int, n float64) float64 {
	return (float64(count-1) + x.skew) * n / float64(x.size)
}

// addMessages adds the time of so many more messages of shards, without their bytes.
func (x *exchange) addMessages(n, more float64) {
	part := n / float64(x.size)
	wire, send := x.wireTime(part)-float64(x.Byte*part), x.sendTime(part)-float64(x.SendByte*part)
	x.first.Processor += float64(more * max(wire, send))
	x.wired += float64(more * wire)
	x.busy.Processor += float64(more * (send + x.recvTime(part) - float64(x.RecvByte*part)))
}

// addRing goes round once, n bytes in all: combines in a reduce-scatter. A node's ranks pass
// parts on between them before one does to the next node, so a part's way is the links' mean.
// It takes no less than the busiest processor or wire does for it.
func (x *exchange) addRing(n float64, combines bool) {
	part, rounds := x.partBytes(1, n), float64(x.size-1) // the largest one goes round, too
	hop, busiest, wire := x.bothWays(part), x.sendTime(part)+x.recvTime(part), float64(x.lanes*x.wireTime(part))
	if x.ranks > 1 {
		share := 1 / float64(x.ranks)
		busiest = max(x.near.sendTime(part)+x.recvTime(part), x.sendTime(part)+x.near.recvTime(part))
		if x.isInside() {
			share, wire, busiest = 0, 0, x.near.sendTime(part)+x.near.recvTime(part)
		}
		hop = x.near.bothWays(part).times(1 - share).plus(x.withCredit(hop, part).times(share))
	}
	hop = later(later(hop, Terms{Processor: busiest}), Terms{Wire: wire})
	passes := 2.0 // of a byte through the node's memory: a copy
	if combines { // a rank after the other
		adds := x.step + x.crowdedCombine(part)
		hop.Work += adds
		x.busy.Work += float64(rounds * adds)
		passes += 3
	}
	if x.close > 1 { // a node's ranks do so at the same time
		hop = later(hop, work(passes*x.memory*float64(x.close)*part))
	}
	x.first = x.first.plus(hop.times(rounds))
	x.wired += float64(rounds * wire)
	x.busy.Processor += float64(rounds * busiest)
}

// addNeighbors adds an allgather in rounds of two parts, with one side after the other.
func (x *exchange) addNeighbors(n float64) {
	x.addRound(1, x.partBytes(1, n), false)
	for i := 1; i < x.size/2; i++ {
		l, far := x.link, 1
		switch whole := x.hasWholePairs(); {
		case x.isInside() || whole && i%2 == 0:
			l, far = x.near, 0
		case whole: // at both ends of a node
			far = 2
		}
		x.addOver(l, far, x.partBytes(2, n), false)
	}
	x.addMessages(n, float64(x.size/2-1))
}

// addPairwise adds an exchange of all with all in one round.
func (x *exchange) addPairwise(n float64, combines bool) {
	part := x.partBytes(1, n) // to the largest node's leader, or from it
	x.addEverybody(part)
	if combines {
		others := float64(x.size - 1)
		x.first.Work += float64(others * (x.step + x.crowdedCombine(part)))
		x.busy.Work += float64(others * x.crowdedCombine(part))
	}
}

// addEverybody adds a message of n bytes from each rank to each other one, at once. A rank sends
// before it looks at what has come.
func (x *exchange) addEverybody(n float64) {
	all := x.others(x.lanes)
	sends, busy, wire := 0.0, 0.0, 0.0
	for _, p := range all {
		sends += float64(p.count * p.sendTime(n))
		busy += float64(p.count * (p.sendTime(n) + p.recvTime(n)))
		wire += float64(p.share * p.count * p.wireTime(n))
	}
	last := all[0].link
	hop := last.withCredit(last.oneWay(n), n)
	more := max(sends, hop.sum()-last.recvTime(n)) + busy - sends - hop.sum()
	x.first = x.first.plus(hop).plus(later(Terms{Wire: max(0, wire-last.wireTime(n))}, Terms{Processor: max(0, more)}))
	x.wired += wire
	x.busy.Processor += busy
}
