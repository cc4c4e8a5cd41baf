package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// swap returns a phase of an alltoall of blocks of n bytes. A message is what a rank has for
// another one in its phase: in lanes the blocks of a node's place, in levels those of a node.
func (p *Pricer) swap(o *outline, at int, w way, n float64) (stage, bool) {
	inside, nodes, each, pieces := o.inside[at], float64(p.on.Nodes()), float64(p.together), 1.0
	all := o.on.Depth() == 1 || p.on.Size() == p.on.Nodes() // with all
	lanes := 1.0
	switch {
	case all:
	case p.together < 2 || o.on.Depth() > 2:
		return stage{}, false
	case o.shape == tasks.Lanes && inside:
		pieces = nodes
	case o.shape == tasks.Lanes:
		lanes, pieces = each, each
	case inside:
		pieces = nodes * each
	default:
		pieces = each * each
	}
	g, ok := p.group(o, at, w, float64(p.request.Bytes())*pieces)
	if !ok {
		return stage{}, false
	}
	s := newShare(&g, &w, pieces*n)
	switch {
	case !inside || s == nil:
		return (&exchange{group: g, lanes: lanes, skew: 1}).swapped(&w, n, pieces)
	case o.shape == tasks.Han && !all: // its leader gathers or scatters
		return s.stage(o.phases[at].Kind.Op)
	default:
		return s.swapped(pieces, n), true
	}
}

// swapped is an alltoall of messages of so many pieces of n bytes.
func (x *exchange) swapped(w *way, n, pieces float64) (stage, bool) {
	message := pieces * n
	if !w.goesWhole(message) || x.size < 2 {
		return stage{}, false
	}
	switch w.Schedule {
	case submodules.AllAtOnce, submodules.StarTree: // its leader is as busy as all would be
		x.everybody(message)
		x.repack(float64(x.size-1), n, pieces)
		// Beyond so many partners messages come before they are expected, and are kept.
		if more := x.size - 1 - w.AtOnce; w.AtOnce > 0 && more > 0 && message <= x.lead {
			kept := work(float64(more) * 2 * x.copies(message))
			x.first, x.busy = x.first.plus(kept), x.busy.plus(kept)
		}
	case submodules.OneByOne:
		x.oneByOne(message)
		x.repack(float64(x.size-1), n, pieces)
	case submodules.DistanceDoubling:
		x.digits(max(w.number, 2), message)
	default:
		return stage{}, false
	}
	own := work(pieces * x.copies(n))
	x.first, x.busy = x.first.plus(own), x.busy.plus(own)
	return x.loads(), true
}

// repack adds copying the pieces of so many messages together, and apart. In a large message
// each piece is one.
func (x *exchange) repack(messages, n, pieces float64) {
	w := work(2 * messages * pieces * x.copies(n))
	switch {
	case pieces == 1:
		return
	case pieces*n > submodules.PackMost:
		w = Terms{Processor: messages * (pieces - 1) * (x.sends(0) + x.receives(0))}
	}
	x.first, x.busy = x.first.plus(w), x.busy.plus(w)
}

// oneByOne is a message to each other rank, one after the other. Of an odd number of ranks one
// has no partner in each round.
func (x *exchange) oneByOne(n float64) {
	inside := float64(min(x.ranks, x.size) - 1)
	others := float64(x.size-1) - inside
	rounds := 1 + float64(x.size%2)/float64(x.size-1)
	add := func(l *link, lead, count, share float64) {
		hop := l.both(n)
		hop.Processor += x.step
		if n > lead {
			hop = hop.plus(l.credit())
		}
		hop = later(hop, Terms{Wire: share * l.wire(n)})
		x.first = x.first.plus(hop.times(count * rounds))
		x.wired += count * rounds * share * l.wire(n)
		x.busy.Processor += count * (l.sends(n) + l.receives(n))
	}
	if others > 0 {
		add(x.link, x.lead, others, x.lanes*float64(x.ranks))
	}
	if inside > 0 {
		add(x.near, x.early, inside, 0)
	}
}

// digits is Bruck's way: blocks of n bytes go by the digits of their way in a radix. Each is
// copied into a message and out of it, and to its place in the end.
func (x *exchange) digits(radix int, n float64) {
	for unit := 1; unit < x.size; unit *= radix {
		for digit := 1; digit < radix && digit*unit < x.size; digit++ {
			period := unit * radix
			blocks := float64(x.size/period*unit + min(max(0, x.size%period-digit*unit), unit))
			packs := work(blocks * x.copies(n))
			if digit == 1 {
				x.round(digit*unit, blocks*n, false)
			} else { // beside the others of the round
				x.beside(digit*unit, blocks*n)
			}
			x.first, x.busy = x.first.plus(packs), x.busy.plus(packs)
		}
	}
	places := work(float64(x.size-1) * x.copies(n))
	x.first, x.busy = x.first.plus(places), x.busy.plus(places)
}

// swapped is an alltoall inside a node of messages that are so many blocks of n bytes. Several
// blocks are packed and placed, by all ranks at the same time.
func (s *share) swapped(blocks, n float64) (st stage) {
	own := work(blocks * s.copies(n))
	each := s.word()
	each.Latency = 0
	if s.posts {
		each = Terms{Processor: s.sends(s.n) + s.receives(s.n)}
	} else {
		each = each.plus(work(s.offer() + s.take(s.copy, float64(s.size))))
	}
	if blocks > 1 {
		each.Work = max(each.Work+2*blocks*s.copies(n), 4*s.memory*s.n*float64(s.size))
	}
	each.Work = max(each.Work, s.kept())
	st.first = s.word().plus(each.times(s.others)).plus(own)
	st.alike(load{busy: each.times(s.others).plus(own)})
	st.total, st.lag = float64(s.size)*st.root.busy.sum(), st.first.sum()
	return st
}
