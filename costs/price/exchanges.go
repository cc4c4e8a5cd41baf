package price

import "math"

// exchange is a schedule in rounds in which each rank of so many sends a message and
// hears one.
type exchange struct {
	*link
	crowd
	size  int
	lanes float64 // groups of one rank of each node that do the same at the same time; 0: one
	lead  float64 // goes without credit, bytes
	late  float64 // what messages take of a processor that come before it expects them, ns
	first Terms
	wired float64 // of the busiest wire, ns
	busy  Terms   // of one rank
	meets bool    // a rank hears another one than it speaks to
	pairs bool    // ranks speak with those whose number differs in one digit
}

// crowd is ranks of a node in a group of ranks of several nodes, numbered node by node.
type crowd struct {
	ranks int     // of a node; 1: all others are on other nodes
	near  *link   // between them
	lead  float64 // goes without credit between them, bytes
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
	hop := l.both(n)
	hop.Processor += x.step // the end of a round
	share := float64(far) * max(1, x.lanes)
	if share > 1 {
		hop.Wire += (share - 1) * l.wire(n)
	}
	if x.meets && x.size&(x.size-1) != 0 {
		hop.Wire *= 1 + wrapped
	}
	if n > lead {
		hop = hop.plus(l.credit())
	}
	x.busy.Processor += l.sends(n) + l.receives(n)
	x.wired += share * l.wire(n)
	if combines {
		hop.Work += x.combines(n)
		hop.Processor += x.step
		x.busy.Work += x.combined(n)
	}
	x.first = x.first.plus(hop)
}

// via returns the link to ranks so many places away, what goes there without credit, and
// how many messages of a node's ranks pass the node's wire at the same time.
func (x *exchange) via(places int) (l *link, lead float64, far int) {
	if x.size <= x.ranks {
		return x.near, x.crowd.lead, 0
	}
	if places < x.ranks && x.pairs && isPower(x.ranks) {
		return x.near, x.crowd.lead, 0
	}
	return x.link, x.lead, max(min(places, x.ranks, x.size-places), 1)
}

func isPower(n int) bool { return n&(n-1) == 0 }

// combines returns what it takes to combine n bytes with others while all ranks of the node
// do so.
func (x *exchange) combines(n float64) float64 {
	if n == 0 {
		return 0
	}
	return x.step + x.combined(n)
}

// combined is combines without the step.
func (x *exchange) combined(n float64) float64 {
	return max(x.reduce, x.contends()*3*x.memory*max(float64(x.ranks), x.lanes)) * n
}

// contends returns how many times as long the node's memory takes for ranks that use it at
// once.
func (x *exchange) contends() float64 {
	if x.ranks > 1 || x.lanes > 1 {
		return contended
	}
	return 1
}

// stage returns the rounds' loads.
func (x *exchange) stage() stage {
	s := stage{first: x.first, lag: x.first.sum()}
	wire := x.wired
	if x.meets {
		wire *= 1 + 2*crossing
	}
	s.alike(load{wire, wire, x.busy})
	s.total = float64(x.size) * s.root.busy.sum()
	return s
}

// doubling is an allreduce by recursive doubling.
func (x *exchange) doubling(n float64) {
	x.pairs = true
	members := 1 << int(math.Log2(float64(x.size)))
	fold := members < x.size
	if fold {
		x.folds(n, true)
	}
	for m := 1; m < members; m *= 2 {
		x.halved(fold, m, n, true)
	}
	if fold {
		x.folds(n, false)
		if x.ranks%2 == 1 { // else they are neighbours on a node
			won := x.both(n)
			won.Wire = 0 // which carries as much
			x.first = x.first.plus(won.times(-ahead))
		}
	}
}

// rabenseifner is a reduce-scatter by halving, then an allgather, or a gather: then those
// that were folded away get nothing back. If some were folded, half of the ranks of their
// nodes are members, and the others go on with all their ranks: it takes as long as the
// slower ones.
func (x *exchange) rabenseifner(n float64, gathers bool) {
	x.pairs = true
	members := 1 << int(math.Log2(float64(x.size)))
	if members == x.size {
		x.halvesBack(members, n)
		return
	}
	if x.ranks < 2 || x.ranks%2 == 1 {
		x.folds(n, true)
		x.halvesBack(members, n)
		if !gathers {
			x.folds(n, false)
		}
		return
	}
	whole, half := *x, *x
	half.folds(n, true)
	half.crowd.ranks /= 2
	half.halvesBack(members, n)
	half.crowd.ranks = x.ranks
	if !gathers {
		half.folds(n, false)
	}
	if 2*members-x.size >= x.ranks { // some nodes have all their ranks
		whole.halvesBack(members, n)
	}
	slower := whole
	if half.first.sum() > whole.first.sum() {
		slower = half
	}
	x.first, x.wired, x.busy = slower.first, slower.wired, slower.busy
}

// inSegments makes several segments dearer on nodes of many ranks, who combine parts of one
// while others wait for those of another one.
func (x *exchange) inSegments(share float64) {
	if x.ranks >= manyRanks/2 {
		x.busy.Work *= 1 + share
	}
}

// halvesBack is the rounds of so many members, there and back.
func (x *exchange) halvesBack(members int, n float64) {
	for m := 1; m < members; m *= 2 {
		x.round(m, n/float64(2*m), true)
	}
	for m := members / 2; m >= 1; m /= 2 {
		x.round(m, n/float64(2*m), false)
	}
}

// folds is a round in which one of every two neighbours sends to the other one. On a node
// half of the ranks combine.
func (x *exchange) folds(n float64, combines bool) {
	if x.ranks < 2 || x.ranks%2 == 1 {
		x.round(1, n, combines)
		return
	}
	part := *x
	part.crowd.ranks = x.ranks / 2
	part.over(x.near, x.crowd.lead, 0, n, combines)
	x.first, x.wired, x.busy = part.first, part.wired, part.busy
}

// halved is a round of partners that are so many members apart. If some were folded, half of
// the ranks of their nodes are members, and the others go on with all their ranks: the round
// takes as long as the slower ones.
func (x *exchange) halved(fold bool, apart int, n float64, combines bool) {
	if !fold || x.ranks < 2 || x.ranks%2 == 1 {
		x.round(apart, n, combines)
		return
	}
	whole, half := *x, *x
	whole.round(apart, n, combines)
	half.crowd.ranks = x.ranks / 2
	half.round(apart, n, combines)
	slower := whole
	if half.first.sum() > whole.first.sum() {
		slower = half
	}
	x.first, x.wired, x.busy = slower.first, slower.wired, slower.busy
}

// shares lists how many shards a rank sends in the rounds of a circulant graph, and how many
// places away.
func (x *exchange) shares() (all []int) {
	for skip := x.size; skip > 1; skip = (skip + 1) / 2 {
		all = append(all, skip-(skip+1)/2)
	}
	return all
}

// halves is a reduce-scatter on a circulant graph, n bytes in all.
func (x *exchange) halves(n float64) {
	x.meets = true
	left := x.size
	for _, k := range x.shares() {
		left -= k
		x.round(left, float64(k)*n/float64(x.size), true)
	}
}

// halvesApart is halves whose parts don't go together.
func (x *exchange) halvesApart(n float64) {
	x.halves(n)
	more := float64(x.size-1) - float64(log2(x.size))
	x.apart(n, more)
	x.first.Work += more * x.step
	x.busy.Work += more * x.step
}

// doubles is an allgather on it.
func (x *exchange) doubles(n float64) {
	x.meets = true
	all, far := x.shares(), 1
	for i := len(all) - 1; i >= 0; i-- {
		x.round(far, float64(all[i])*n/float64(x.size), false)
		far += all[i]
	}
}

// scattered is an allgather by doubling whose parts don't go together.
func (x *exchange) scattered(n float64) {
	x.doubles(n)
	x.apart(n, float64(x.size-1)-float64(log2(x.size)))
}

// overlapped is scattered where a round begins while parts of the one before are on their way.
func (x *exchange) overlapped(n float64) {
	x.doubles(n)
	x.apart(n, 0.4*(float64(x.size-1)-float64(log2(x.size))))
}

// apart adds what so many more messages of parts take, which carry no more bytes.
func (x *exchange) apart(n, more float64) {
	part := n / float64(x.size)
	wire, send := x.wire(part)-x.Byte*part, x.sends(part)-x.SendByte*part
	x.first.Processor += more * max(wire, send)
	x.wired += more * wire
	x.busy.Processor += more * (send + x.receives(part) - x.RecvByte*part)
}

// ring goes round once, n bytes in all: combines in a reduce-scatter. A node's ranks pass
// parts on between them before one does to the next node. A part waits for the slower of
// its way on average and the busiest of the wires.
func (x *exchange) ring(n float64, combines bool) {
	part, rounds := n/float64(x.size), float64(x.size-1)
	hop, busiest := x.both(part), x.sends(part)+x.receives(part)
	across := x.ranks == 1 || x.size > x.ranks
	if x.ranks > 1 {
		share := 0.0
		busiest = x.near.sends(part) + x.near.receives(part)
		if across {
			share = 1 / float64(x.ranks)
			busiest = max(x.near.sends(part)+x.receives(part), x.sends(part)+x.near.receives(part))
		}
		asked := Terms{}
		if part > x.lead && across {
			hop = hop.plus(x.credit())
			asked = hop.times(askedFor)
		}
		hop = later(x.near.both(part).times(1-share).plus(hop.times(share)).times(1+uneven), asked)
	}
	if x.ranks > 1 && !combines && part > 64 {
		busiest *= 1 + max(0, jostled*math.Log2(float64(x.size)/16))*min(1, math.Floor(float64(x.ranks)/16))
	}
	hop = later(hop, Terms{Processor: busiest})
	wire := 0.0
	if across {
		wire = max(1, x.lanes) * x.wire(part)
		waits := Terms{Wire: wire}
		if x.ranks > 1 && !combines && part > x.eager && part <= x.lead {
			waits.Latency = promised * x.Latency
		}
		hop = later(hop, waits)
	}
	if combines { // a rank after the other
		adds := x.step + x.combined(part)/x.contends()
		hop.Work += adds
		x.busy.Work += rounds * adds
	}
	x.first = x.first.plus(hop.times(rounds))
	x.wired += rounds * wire
	x.busy.Processor += rounds * busiest
}

// neighbor is an allgather in rounds of two parts, with one side after the other.
func (x *exchange) neighbor(n float64) {
	part := n / float64(x.size)
	x.round(1, part, false)
	for i := 1; i < x.size/2; i++ {
		switch {
		case x.size <= x.ranks || x.ranks > 1 && x.ranks%2 == 0 && i%2 == 0:
			x.over(x.near, x.crowd.lead, 0, 2*part, false)
		case x.ranks == 1 || x.ranks%2 == 1:
			x.over(x.link, x.lead, 1, 2*part, false)
		default: // at both ends of a node
			x.over(x.link, x.lead, 2, 2*part, false)
		}
	}
	x.apart(n, float64(x.size/2-1))
	if x.ranks > 2 && 2*part > x.eager {
		x.first = x.first.times(1 + paired*math.Log2(float64(x.ranks)))
	}
}

// pairwise is an exchange of all with all in one round.
func (x *exchange) pairwise(n float64, combines bool) {
	part := n / float64(x.size)
	x.everybody(part)
	if combines {
		if part > turn { // parts to one rank meet
			x.first.Wire *= 1 + 4*unequal
		}
		others := float64(x.size - 1)
		x.first.Work += others * x.combines(part)
		x.busy.Work += x.combined(part) * others
	}
}

// nearSends returns what a message to a rank of the node takes of its sender.
func (x *exchange) nearSends(n float64) float64 {
	if x.near == nil {
		return 0
	}
	return x.near.sends(n)
}

// everybody is a message of n bytes from each rank to each other one, at once.
func (x *exchange) everybody(n float64) {
	inside := float64(min(x.ranks, x.size) - 1)
	others := float64(x.size-1) - inside
	each := x.sends(n) + x.receives(n)
	wire := max(1, x.lanes) * float64(x.ranks) * others * x.wire(n)
	busy := others*each + x.late
	if inside > 0 {
		busy += inside * (x.near.sends(n) + x.near.receives(n))
	}
	last, lead := x.link, x.lead
	if others == 0 {
		last, lead = x.near, x.crowd.lead
	} else {
		wire -= x.wire(n)
	}
	hop := last.hop(n)
	if n > lead {
		hop = hop.plus(last.credit())
	}
	sends := others*x.sends(n) + inside*x.nearSends(n) // before a rank looks at what has come
	more := max(sends, hop.sum()-last.receives(n)) + busy - sends - hop.sum()
	x.first = x.first.plus(hop).plus(later(Terms{Wire: wire}, Terms{Processor: more}))
	x.wired += wire + math.Min(1, others)*x.wire(n)
	x.busy.Processor += busy
}

// By which share combining takes longer on nodes of many ranks where segments follow each
// other through Rabenseifner's rounds, of a reduce and of an allreduce, as simulations have it.
const (
	halvedBehind  = 0.25
	doubledBehind = 0.6
)

// contended is how many times as long the memory of a node takes that its ranks use at the
// same time, as simulations have it.
const contended = 1.5

// uneven is by how much a round of a ring over two kinds of links takes longer than on
// average, as simulations have it.
const uneven = 0.15

// promised is for which share of the latency the wire between two nodes of several ranks
// idles in each round of a ring whose messages need credit, as simulations have it.
const promised = 0.6

// jostled is by which share a ring's rounds take longer for each doubling of its ranks from 16
// on, where nodes have at least as many, as simulations have it.
const jostled = 0.25

// paired is by which share a neighbor exchange of messages that need credit takes longer for
// each doubling of a node's ranks, as simulations have it.
const paired = 0.1

// askedFor is which share of its way a part takes for itself that is asked for two rounds before.
const askedFor = 0.4

// wrapped is by how much messages take longer of which a circle of ranks that is no power
// of two cuts some in two, as simulations have it.
const wrapped = 0.15

// Shares that simulations have on average: behind and once are how much of the difference
// between a hop and a load a block is late whose sum its sender waits for, and the last of
// several blocks of a bcast. ahead is how much of a round ranks gain that don't stand for two.
// crossing is how much of its time a wire is idle because messages to one rank meet.
const (
	behind   = 0.4
	once     = 0.9
	ahead    = 0.8
	crossing = 0.06
)

// blocks is a bcast or a reduce of n bytes on a circulant graph, in blocks. The root
// sends one in every round, or hears one. So many ranks of a node share its wire: in each round
// as many send to another node as the round's skip is long, and no more than there are.
func (l *link) blocks(size int, n, block, lead float64, reduces bool, together int) stage {
	if block <= 0 || block > n {
		block = n
	}
	count := 1.0
	if block > 0 {
		count = math.Ceil(n / block)
	}
	depth := log2(size)
	hop, wire := l.hop(block), l.wire(block)
	if together > 1 {
		far, rounds := 0.0, 0.0
		for skip := (size + 1) / 2; ; skip = (skip + 1) / 2 {
			far, rounds = far+float64(min(together, skip)), rounds+1
			if skip <= 1 {
				break
			}
		}
		wire *= far / rounds
	}
	if depth > 2 {
		wire *= 1 + crossing
	}
	further := max(0, float64(size-2)/float64(size-1)) // blocks that a rank passes on, of those that it hears
	root := Terms{Processor: l.sends(block)}
	busy := root.times(further).plus(Terms{Processor: l.receives(block)})
	if reduces {
		hop.Work += l.combines(block)
		root = Terms{Processor: l.receives(block), Work: l.combines(block)}
		busy = root.times(further).plus(Terms{Processor: l.sends(block)})
	}
	each := later(later(root, busy), Terms{Wire: wire})
	late := max(0, hop.sum()-each.sum())
	if reduces {
		each.Latency += behind * late
	} else if count > 1 {
		hop.Latency += once * late / float64(max(1, depth))
	}
	s := stage{first: hop.times(float64(depth)).plus(each.times(count - 1))}
	if block > lead {
		s.first = s.first.plus(l.credit())
	}
	turns := count - 1 + float64(depth)
	s.root, s.inner = load{out: turns * wire, busy: root.times(turns)}, load{count * wire, count * wire, busy.times(count)}
	if reduces {
		s.root.in, s.root.out = s.root.out, 0
	}
	s.lag, s.total = s.first.sum(), float64(size-1)*s.inner.busy.sum()
	return s
}
