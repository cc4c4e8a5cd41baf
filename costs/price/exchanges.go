package price

import "math"

// exchange is a schedule in rounds in which each rank of so many sends a message and
// hears one.
type exchange struct {
	*link
	size  int
	lead  float64 // goes without credit, bytes
	first Terms
	sent  float64 // bytes by one rank
	count float64 // messages by one rank
	added float64 // bytes that one rank combines
	meets bool    // a rank hears another one than it speaks to
}

// round adds a round of messages of n bytes, which are combined with others or not.
func (x *exchange) round(n float64, combines bool) {
	hop := x.both(n)
	hop.Processor += x.step // the end of a round
	if x.meets && x.size&(x.size-1) != 0 {
		hop.Wire *= 1 + wrapped
	}
	if n > x.lead {
		hop = hop.plus(x.credit())
	}
	if combines {
		hop.Work += x.combines(n)
		hop.Processor += x.step
		x.added += n
	}
	x.first = x.first.plus(hop)
	x.sent += n
	x.count++
}

// stage returns the rounds' loads.
func (x *exchange) stage() stage {
	s := stage{first: x.first, lag: x.first.sum()}
	if x.count == 0 {
		return s
	}
	each := x.sent / x.count
	wire := x.count * x.wire(each)
	if x.meets {
		wire *= 1 + 2*crossing
	}
	s.alike(load{wire, wire, Terms{
		Processor: x.count * (x.sends(each) + x.receives(each)), Work: max(x.reduce, 3*x.memory) * x.added,
	}})
	s.total = float64(x.size) * s.root.busy.sum()
	return s
}

// doubling is an allreduce by recursive doubling.
func (x *exchange) doubling(n float64) {
	members := 1 << int(math.Log2(float64(x.size)))
	fold := members < x.size
	if fold {
		x.round(n, true)
	}
	for m := 1; m < members; m *= 2 {
		x.round(n, true)
	}
	if fold {
		x.round(n, false)
		won := x.both(n)
		won.Wire = 0 // which carries as much
		x.first = x.first.plus(won.times(-ahead))
	}
}

// rabenseifner is a reduce-scatter by halving, then an allgather, or a gather: then those
// that were folded away get nothing back.
func (x *exchange) rabenseifner(n float64, gathers bool) {
	members := 1 << int(math.Log2(float64(x.size)))
	fold := members < x.size
	if fold {
		x.round(n, true)
	}
	for m := 2; m <= members; m *= 2 {
		x.round(n/float64(m), true)
	}
	for m := members; m > 1; m /= 2 {
		x.round(n/float64(m), false)
	}
	if fold && !gathers {
		x.round(n, false)
	}
}

// shares lists how many shards a rank sends in the rounds of a circulant graph.
func (x *exchange) shares() (all []float64) {
	for skip := x.size; skip > 1; skip = (skip + 1) / 2 {
		all = append(all, float64(skip-(skip+1)/2))
	}
	return all
}

// halves is a reduce-scatter on a circulant graph, n bytes in all.
func (x *exchange) halves(n float64) {
	x.meets = true
	for _, k := range x.shares() {
		x.round(k*n/float64(x.size), true)
	}
}

// scattered is an allgather by doubling whose parts don't go together.
func (x *exchange) scattered(n float64) {
	x.doubles(n)
	part := n / float64(x.size)
	more := max(x.wire(part)-x.Byte*part, x.sends(part)-x.SendByte*part)
	extra := float64(x.size-1) - x.count
	x.first.Processor += extra * more
	x.count += extra
}

// doubles is an allgather on it.
func (x *exchange) doubles(n float64) {
	x.meets = true
	all := x.shares()
	for i := len(all) - 1; i >= 0; i-- {
		x.round(all[i]*n/float64(x.size), false)
	}
}

// ring goes round once, n bytes in all: combines in a reduce-scatter.
func (x *exchange) ring(n float64, combines bool) {
	part := n / float64(x.size)
	hop := x.both(part)
	if combines {
		hop.Work += x.combines(part)
		x.added += part * float64(x.size-1)
	}
	rounds := float64(x.size - 1)
	x.first = x.first.plus(hop.times(rounds))
	x.sent += part * rounds
	x.count += rounds
}

// pairwise is an exchange of all with all in one round.
func (x *exchange) pairwise(n float64, combines bool) {
	part, others := n/float64(x.size), float64(x.size-1)
	hop := x.hop(part)
	if part > x.lead {
		hop = hop.plus(x.credit())
	}
	next := max(x.wire(part), x.sends(part)+x.receives(part))
	if next > x.wire(part) {
		hop.Processor += (others - 1) * next
	} else {
		hop.Wire += (others - 1) * next
	}
	if combines {
		hop.Work += others * x.combines(part)
		x.added += part * others
	}
	x.first = x.first.plus(hop)
	x.sent += part * others
	x.count += others
}

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
// sends one in every round, or hears one.
func (l *link) blocks(size int, n, block, lead float64, reduces bool) stage {
	if block <= 0 || block > n {
		block = n
	}
	count := 1.0
	if block > 0 {
		count = math.Ceil(n / block)
	}
	depth := log2(size)
	hop, wire := l.hop(block), l.wire(block)
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
