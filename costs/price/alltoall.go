package price

import (
	"math"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/adapt"
	"github.com/tierflow/tierflow/tasks"
)

// turn is what a message may have on the wire before others have a turn, bytes.
const turn = 128 << 10

// pieces are how a message of an alltoall lies on its two ends.
type pieces struct {
	count float64 // of a message and of what a rank has for its own ones; 1: it goes as it lies
}

// swap returns a phase of an alltoall whose blocks have n bytes.
func (p *Pricer) swap(o *outline, at int, c tasks.Choice, n float64) (stage, bool) {
	ph := o.phases[at]
	inside, size, every := o.inside[at], o.widest[at], float64(p.on.Size())
	block, lead := float64(p.request.Bytes()), p.lead // what two ranks have for each other in all
	if inside {
		lead = p.near
	}
	l := p.links[p.level(o, ph)].leading(block*p.blocks(o, inside), lead, 1)
	x := &exchange{link: l, crowd: crowd{ranks: 1}, size: size, lead: p.lead}
	if o.on.Depth() == 1 || p.on.Size() == p.on.Nodes() { // all with all
		if !inside && size > p.on.Nodes() {
			x.crowd = crowd{ranks: p.together, near: p.links[p.on.Depth()-2].leading(block, p.near, 1), lead: p.near}
		}
		if inside {
			x.lead = p.near
			if s := newShare(l, c, size, n); s != nil {
				return s.swapped(1, n), true
			}
		}
		return x.swapped(c, n, pieces{1})
	}
	each := float64(p.together)
	switch {
	case p.together < 2 || o.on.Depth() > 2:
		return stage{}, false
	case o.shape == tasks.Lanes && inside:
		s := newShare(l, c, size, n*float64(p.on.Nodes()))
		if s == nil {
			return stage{}, false
		}
		return s.swapped(float64(p.on.Nodes()), n), true
	case o.shape == tasks.Lanes:
		x.size, x.lanes = p.on.Nodes(), each
		return x.swapped(c, each*n, pieces{1})
	case inside:
		s := newShare(l, c, size, n*every)
		if s == nil {
			return stage{}, false
		}
		st, ok := s.stage(ph.Kind.Op)
		own := work(s.copies(n * every))
		st.first = st.first.plus(own)
		st.root.busy = st.root.busy.plus(own)
		return st, ok
	default:
		return x.swapped(c, each*each*n, pieces{each * each})
	}
}

// blocks returns how many blocks a rank has for a partner, inside nodes or between them.
func (p *Pricer) blocks(o *outline, inside bool) float64 {
	switch {
	case o.on.Depth() == 1 || p.on.Size() == p.on.Nodes():
		return 1
	case inside && o.shape == tasks.Lanes:
		return float64(p.on.Nodes())
	case inside:
		return float64(p.on.Size())
	case o.shape == tasks.Lanes:
		return float64(p.together)
	default:
		return float64(p.together * p.together)
	}
}

// swapped is an alltoall of messages of n bytes.
func (x *exchange) swapped(c tasks.Choice, n float64, as pieces) (stage, bool) {
	if c.Inner > 0 && float64(c.Inner) < n || x.size < 2 || x.ranks < 1 {
		return stage{}, false
	}
	others := float64(x.size - 1)
	switch alg := c.Submodule + "/" + c.Algorithm; alg {
	case "adapt/linear", "nbc/linear":
		if !x.atOnce(c.Submodule, n) {
			return stage{}, false
		}
		if more := others - adapt.MaxPartners; more > 0 && c.Submodule == submodules.Adapt {
			x.late = more * 2 * x.step // the ends of earlier ones are waited for
			if n <= x.lead {
				x.late += more * 2 * (x.copies(n) - x.step) // it is kept until it is expected
			}
		}
		x.everybody(n)
		idle := x.idles(n) / (others + 1 - float64(x.ranks))
		x.first.Wire *= 1 + idle
		if x.ranks == 1 { // else other segments fill it
			x.wired *= 1 + idle
		}
		if x.lanes > 1 {
			idle = 1 + unequal/2*math.Log2(x.lanes)
			x.first.Wire *= idle
			x.wired *= idle
		}
		x.repack(others, n, as)
	case "adapt/pairwise", "nbc/pairwise":
		if x.ranks > 8 && n <= x.lead && (n <= x.eager || c.Submodule == submodules.Adapt || x.size > 5*x.ranks) {
			return stage{}, false // messages without credit get into each other's way
		}
		x.oneByOne(n)
		x.repack(others, n, as)
	case "nbc/bruck":
		x.digits(or(c.N, 2), n, as)
	default:
		return stage{}, false
	}
	own := work(as.count * x.copies(n/as.count))
	x.first, x.busy = x.first.plus(own), x.busy.plus(own)
	return x.stage(), true
}

// idles returns in how many rounds of a tournament a rank's wire waits for others: it has
// no partner, or one of its own node. Words that ask for messages put half of them in order.
func (x *exchange) idles(n float64) float64 {
	others, odd := float64(x.size-1), float64(x.size%2)
	switch {
	case x.lanes > 1 || x.size <= 2*x.ranks:
		return 0
	case x.ranks > 1 && n <= x.lead && x.size > 3*x.ranks:
		return float64(x.ranks-1) + odd
	case x.ranks > 1 && n <= x.lead:
		return float64(x.ranks-1)/2 + odd
	case x.ranks > 1:
		return float64(x.ranks-1) / 2
	case n <= x.lead:
		return odd * math.Ceil(others/adapt.MaxPartners)
	case x.size == 3:
		return 0
	default:
		return odd
	}
}

// atOnce reports whether messages of n bytes to all partners have a price: of ranks that share
// a node no more than may be on their way at the same time, unless they need credit, for later
// ones hold each other up.
func (x *exchange) atOnce(submodule string, n float64) bool {
	switch {
	case x.lanes > 1:
		return x.size <= adapt.MaxPartners+1
	case x.ranks == 1:
		return true
	case submodule == submodules.Adapt && n > x.lead:
		return x.ranks <= adapt.MaxPartners+1
	case submodule == submodules.NBC:
		return x.size <= adapt.MaxPartners+1
	default:
		return x.size-x.ranks <= adapt.MaxPartners && x.ranks <= adapt.MaxPartners+1
	}
}

// repack adds copying the pieces of so many messages together, and apart.
func (x *exchange) repack(messages, n float64, as pieces) {
	switch {
	case as.count == 1:
	case n > submodules.PackMost: // each piece is a message
		piece := n / as.count
		wire, busy := x.wire(piece)*as.count-x.wire(n), (as.count-1)*(x.sends(piece)+x.receives(piece)-(x.SendByte+x.RecvByte)*piece)
		x.wired += messages * wire
		x.busy.Processor += messages * busy
		x.first = x.first.plus(later(Terms{Wire: messages * wire}, Terms{Processor: messages * busy}))
	default:
		w := work(2 * messages * as.count * x.copies(n/as.count))
		x.first, x.busy = x.first.plus(w), x.busy.plus(w)
	}
}

// unequal is by how much of its time a wire is idle that twice as many ranks share who wait
// for their partners, as simulations have it.
const unequal = 0.15

// meeting is for how many steps two ranks of a node hold each other up whose messages come
// before they are expected, and crowded how many times as long a node's memory takes for
// pieces that all of its ranks copy, as simulations have it.
const (
	meeting = 3.6
	crowded = 1.25
)

// oneByOne is a message to each other rank, one after the other.
func (x *exchange) oneByOne(n float64) {
	inside := float64(min(x.ranks, x.size) - 1)
	rounds := float64(x.size - 1)
	add := func(l *link, lead, count, share float64) {
		if count <= 0 {
			return
		}
		hop := l.both(n)
		hop.Processor += x.step
		if n > lead {
			hop = hop.plus(l.credit())
		}
		if n > turn && x.ranks > 1 {
			hop = hop.times(1 + 2*unequal)
		}
		hop = later(hop, Terms{Wire: share * l.wire(n) * (1 + unequal*math.Log2(max(1, share)))})
		x.first = x.first.plus(hop.times(count + float64(x.size%2)*count/rounds))
		x.wired += (count + float64(x.size%2)*count/rounds) * share * l.wire(n)
		x.busy.Processor += count * (l.sends(n) + l.receives(n))
	}
	add(x.link, x.lead, rounds-inside, max(1, x.lanes)*float64(x.ranks))
	if inside > 0 {
		add(x.near, x.crowd.lead, inside, 0)
	}
}

// digits is Bruck's way: blocks go by the digits of their way in a radix.
func (x *exchange) digits(radix int, n float64, as pieces) {
	x.meets = true
	for unit := 1; unit < x.size; unit *= radix {
		for digit := 1; digit < radix && digit*unit < x.size; digit++ {
			period := unit * radix
			count := x.size/period*unit + min(max(0, x.size%period-digit*unit), unit)
			blocks := float64(count)
			l, lead, far := x.via(digit * unit)
			bytes := blocks * n
			packs := work(blocks * x.copies(n))
			share := float64(far) * max(1, x.lanes)
			hop := l.both(bytes)
			if digit > 1 { // beside the others of the round
				hop = later(Terms{Wire: l.wire(bytes)}, Terms{Processor: l.sends(bytes) + l.receives(bytes)})
			} else {
				hop.Processor += 2 * x.step
			}
			if share > 1 {
				hop.Wire += (share*(1+unequal/2*math.Log2(share)) - 1) * l.wire(bytes)
			}
			if bytes > lead {
				hop = hop.plus(l.credit())
			}
			x.first = x.first.plus(hop).plus(packs)
			x.wired += share * l.wire(bytes)
			x.busy = x.busy.plus(packs).plus(Terms{Processor: l.sends(bytes) + l.receives(bytes)})
		}
	}
	places := work(float64(x.size-1) * (as.count*x.copies(n/as.count) + (as.count-1)*x.step))
	x.first, x.busy = x.first.plus(places), x.busy.plus(places)
}

// swapped is an alltoall inside a node of messages that are so many blocks of n bytes.
func (s *share) swapped(blocks, n float64) (st stage) {
	others := s.ranks - 1
	packs, places := 0.0, blocks*s.copies(n)
	if blocks > 1 {
		packs = blocks * s.copies(n)
	}
	st.first = s.word()
	if s.sends {
		if blocks == 1 {
			places = 0
		}
		st.first.Processor += others * (2*s.step + s.Send + s.Recv + (s.SendByte+s.RecvByte)*s.n)
		st.first.Work += others * (packs + places)
	} else {
		st.first.Processor += others * 2 * (2*s.step + s.Send + s.Recv)
		st.first.Work += others * (packs + s.offer() + places)
		if s.reads {
			st.first.Work += others * (s.touch + s.peer*s.n)
		}
	}
	own, held := blocks*s.copies(n), 0.0
	if blocks > 1 && s.memory > 0 {
		held = s.carried(blocks * n)
	}
	busy := st.first
	busy.Latency = 0
	if blocks > 1 && s.memory > 0 { // segments meet
		busy.Work = max((busy.Work+own)*max(1, s.ranks/4), held)
	} else {
		busy.Work += own
	}
	st.first.Work = max(st.first.Work, held) + own
	st.alike(load{busy: busy})
	st.total, st.lag = s.ranks*busy.sum(), st.first.sum()
	return st
}

// carried returns what the node's memory takes for packing and placing n bytes of each rank
// for each other one. Short messages that nobody expects yet are kept, and copied twice more.
func (s *share) carried(n float64) float64 {
	pairs := s.ranks * (s.ranks - 1)
	once := pairs * 2 * s.memory * n
	switch {
	case s.sends && n <= s.eager:
		return pairs*meeting*s.step + 4*once
	case s.reads:
		return crowded * once
	case n <= submodules.PackMost:
		return crowded * 2 * once
	case s.sends:
		return once
	default:
		return 2 * once
	}
}
