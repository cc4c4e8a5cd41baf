package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// priced is what a phase takes with a choice.
type priced struct {
	choice tasks.Choice
	n      float64 // bytes of a segment
	stage  stage
	ok     bool // it has a price
}

// stageAgain is stage. It keeps the last ones inside nodes: plans that differ in what nodes do
// between them follow each other.
func (p *Pricer) stageAgain(o *outline, at int, c tasks.Choice, n float64) (stage, bool) {
	if !o.inside[at] {
		return p.stage(o, at, c, n)
	}
	last := &o.last[at]
	for i := range last {
		if k := &last[i]; k.choice == c && k.n == n && k.choice.Submodule != "" {
			return k.stage, k.ok
		}
	}
	st, ok := p.stage(o, at, c, n)
	copy(last[1:], last[:])
	last[0] = priced{c, n, st, ok}
	return st, ok
}

// stage returns what a phase takes of a segment, which is n bytes of the whole message,
// or of all blocks together.
func (p *Pricer) stage(o *outline, at int, c tasks.Choice, n float64) (stage, bool) {
	ph := o.phases[at]
	if p.request.Exchanges() {
		return p.swap(o, at, c, n/float64(p.on.Size()))
	}
	size, partners := o.widest[at], 1
	if c.Submodule == submodules.Circulant {
		partners = log2(o.widest[at])
	}
	whole := float64(p.request.AllBytes(p.on.Size()))
	lead := p.lead
	if o.inside[at] {
		lead = p.near
	}
	l := p.links[p.level(o, ph)].leading(whole, lead, partners)
	all := crowd{ranks: 1}
	if !o.inside[at] && size > p.on.Nodes() {
		if all.ranks = p.together; all.ranks == 0 {
			return stage{}, false
		}
		all.near, all.lead = p.links[p.on.Depth()-2].leading(whole, p.near, partners), p.near
	}
	switch ph.Kind.Op {
	case tasks.Gather, tasks.Scatter, tasks.Allgather, tasks.ReduceScatter:
		if p.request.Blocks() {
			n /= float64(o.groups[at])
		}
		if ph.Kind.Op == tasks.Gather || ph.Kind.Op == tasks.Scatter {
			n /= float64(size)
		}
	}
	lanes := 0.0
	if o.shape == tasks.Lanes {
		switch {
		case p.together == 0 || o.on.Depth() > 2:
			return stage{}, false
		case !o.inside[at]:
			lanes = float64(p.together)
			n /= lanes
		}
	}
	if s := newShare(l, c, size, n); s != nil {
		return s.stage(ph.Kind.Op)
	}
	switch ph.Kind.Op {
	case tasks.Bcast, tasks.Reduce:
		return along(l, all, o.inside[at], c, size, n, lead, ph.Kind.Op == tasks.Reduce)
	case tasks.Gather, tasks.Scatter:
		return parted(l, all, c, size, n, lead, ph.Kind.Op == tasks.Gather)
	case tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter:
		return exchanged(&exchange{link: l, crowd: all, size: size, lanes: lanes, lead: lead}, c, ph.Kind.Op, n)
	default:
		return stage{}, false
	}
}

// stage returns that of an operation inside a node.
func (s *share) stage(op tasks.Collective) (stage, bool) {
	switch op {
	case tasks.Bcast:
		return s.outward(false), true
	case tasks.Scatter:
		return s.outward(true), true
	case tasks.Reduce:
		return s.inward(true), true
	case tasks.Gather:
		return s.inward(false), true
	case tasks.Allgather:
		return s.shared(false), true
	case tasks.ReduceScatter:
		return s.shared(true), true
	default:
		return stage{}, false
	}
}

// along returns the stage of a bcast or a reduce over links.
func along(l *link, all crowd, inside bool, c tasks.Choice, size int, n, lead float64, reduces bool) (stage, bool) {
	if c.Submodule == submodules.Circulant {
		return l.blocks(size, n, float64(c.Inner), lead, reduces, all.ranks), true
	}
	if c.Inner > 0 && float64(c.Inner) < n || size < 2 {
		return stage{}, false
	}
	t := newTree(l, all, size, n, lead, reduces)
	if inside {
		t.each = size
	}
	switch c.Algorithm {
	case submodules.Binomial, "":
		return t.radix(or(c.N, 2)), true
	case submodules.Binary:
		return t.spread(or(c.N, 2)), all.ranks == 1
	case submodules.Chain:
		return t.chain(), true
	case submodules.KChain:
		return t.kchain(or(c.N, trees.Chains)), all.ranks == 1
	case submodules.Linear:
		return t.linear(c.Submodule == submodules.NBC), all.ranks == 1 && (c.Submodule == submodules.NBC || size <= or(c.N, trees.MaxFan))
	case submodules.KNomial:
		return t.radix(or(c.N, trees.Radix)), !reduces
	case submodules.Rabenseifner:
		x := &exchange{link: l, crowd: all, size: size, lead: lead}
		x.rabenseifner(n, true)
		x.inSegments(halvedBehind)
		return x.stage(), reduces
	default:
		return stage{}, false
	}
}

// or returns a number, or the usual one if it is 0.
func or(number, usual int) int {
	if number == 0 {
		return usual
	}
	return number
}

// exchanged returns the stage of an operation that gives all ranks something.
func exchanged(x *exchange, c tasks.Choice, op tasks.Collective, n float64) (stage, bool) {
	if c.Inner > 0 && float64(c.Inner) < n || c.N > 0 || x.size < 2 {
		return stage{}, false
	}
	switch alg := c.Submodule + "/" + c.Algorithm; {
	case alg == "circulant/blocks" && op == tasks.Allreduce && n > 0:
		x.halves(n)
		x.doubles(n)
	case alg == "circulant/blocks" && n == 0, alg == "nbc/dissemination":
		x.doubles(n)
	case alg == "circulant/blocks" && op == tasks.Allgather:
		x.overlapped(n)
	case alg == "circulant/blocks", alg == "nbc/halving":
		x.halvesApart(n)
	case c.Algorithm == submodules.Ring:
		if op != tasks.Allgather {
			x.ring(n, true)
		}
		if op != tasks.ReduceScatter {
			x.ring(n, false)
		}
	case alg == "nbc/recdoubling" && op == tasks.Allreduce:
		x.doubling(n)
	case alg == "nbc/recdoubling", alg == "nbc/bruck":
		x.scattered(n)
	case alg == "nbc/neighbor":
		if x.ranks >= 16 {
			return stage{}, false // its rounds hold each other up
		}
		x.neighbor(n)
	case alg == "nbc/rabenseifner" && op == tasks.Allreduce:
		x.rabenseifner(n, false)
		x.inSegments(doubledBehind)
	case alg == "nbc/pairwise" && op == tasks.ReduceScatter, alg == "adapt/direct": // the same without rounds
		x.pairwise(n, true)
	case c.Algorithm == submodules.Linear && op == tasks.Allgather:
		x.pairwise(n, false)
	default:
		return stage{}, false
	}
	return x.stage(), true
}
