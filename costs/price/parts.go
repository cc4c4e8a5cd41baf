package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// parted returns the stage of a gather or a scatter over links, of parts of n bytes.
func parted(l *link, all crowd, c tasks.Choice, size int, n, lead float64, gathers bool) (stage, bool) {
	if c.Inner > 0 && float64(c.Inner) < n || size < 2 {
		return stage{}, false
	}
	switch c.Algorithm {
	case submodules.Linear:
		return l.starred(all, size, n, lead, gathers), true
	case submodules.Binomial, "":
		return l.branched(size, n, lead, gathers), c.Submodule == submodules.NBC
	default:
		return stage{}, false
	}
}

// behindParts is how many times as long as its way a part keeps its place in the window, as
// simulations have it.
const behindParts = 1.5

// starred is a part for each rank from the root, or to it. Those of the root's node take of
// its processor alone.
func (l *link) starred(all crowd, size int, n, lead float64, gathers bool) (s stage) {
	others, beside := float64(size-all.ranks), 0.0
	if all.ranks > 1 {
		each := all.near.sends(n)
		if gathers {
			each = all.near.receives(n)
		}
		beside = float64(all.ranks-1) * each
	}
	wire, busy, member := l.wire(n), l.sends(n), l.receives(n)
	if gathers {
		busy, member = member, busy
	}
	s.first = l.hop(n).plus(later(Terms{Wire: (others - 1) * wire}, Terms{Processor: (others-1)*busy + beside}))
	if n > lead {
		s.first = s.first.plus(l.credit())
		if gathers { // the root asks them all first
			s.first.Processor += (others - 1) * l.Send
		}
	}
	own := work(l.copies(n)) // of the root's part
	if !gathers {
		s.first = s.first.plus(own)
	}
	s.root = load{busy: own.plus(Terms{Processor: others*busy + beside})}
	s.inner = load{busy: Terms{Processor: member}}
	if gathers {
		s.root.in, s.inner.out = others*wire, wire
	} else {
		s.root.out, s.inner.in = others*wire, wire
	}
	s.total, s.lag = others*(busy+member)+2*beside, behindParts*l.trip(n)
	return s
}

// branched is a gather or a scatter along a binomial tree of rounds. Each packs all parts
// that go the same way.
func (l *link) branched(size int, n, lead float64, gathers bool) (s stage) {
	path, kids := Terms{}, 0.0
	for unit := 1; unit < size; unit *= 2 {
		parts := float64(min(unit, size-unit)) * n
		hop := l.hop(parts)
		hop.Processor += l.step
		if parts > lead {
			hop = hop.plus(l.credit())
		}
		path = path.plus(hop)
		kids++
		if gathers {
			s.root.in += l.wire(parts)
			s.root.busy.Processor += l.receives(parts)
		} else {
			s.root.out += l.wire(parts)
			s.root.busy.Processor += l.sends(parts)
		}
	}
	others := float64(size - 1)
	s.root.busy.Work += others * l.copies(n)
	s.first = path.plus(work(others*l.copies(n) + l.copies(n)))
	s.inner = load{s.root.in, s.root.out, s.root.busy.times(0.5)}
	if gathers {
		s.inner.out += float64(size/2) * l.wire(n)
	} else {
		s.inner.in += float64(size/2) * l.wire(n)
	}
	s.total, s.lag = 2*float64(log2(size))*others/2*(l.sends(n)+l.receives(n)), s.first.sum()
	return s
}
