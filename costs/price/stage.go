package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// stage returns what a phase takes of a segment, which is n bytes of the whole message,
// or of all blocks together.
func (p *Pricer) stage(o *outline, at int, c tasks.Choice, n float64) (stage, bool) {
	ph := o.phases[at]
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
	switch ph.Kind.Op {
	case tasks.Gather, tasks.Scatter, tasks.Allgather, tasks.ReduceScatter:
		if p.request.Blocks() {
			n /= float64(o.groups[at])
		}
		if ph.Kind.Op == tasks.Gather || ph.Kind.Op == tasks.Scatter {
			n /= float64(size)
		}
	}
	if s := newShare(l, c, size, n); s != nil {
		return s.stage(ph.Kind.Op)
	}
	switch ph.Kind.Op {
	case tasks.Bcast, tasks.Reduce:
		return along(l, c, size, n, lead, ph.Kind.Op == tasks.Reduce)
	case tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter:
		return exchanged(&exchange{link: l, size: size, lead: lead}, c, ph.Kind.Op, n)
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
	default:
		return stage{}, false
	}
}

// along returns the stage of a bcast or a reduce over links.
func along(l *link, c tasks.Choice, size int, n, lead float64, reduces bool) (stage, bool) {
	if c.Submodule == submodules.Circulant {
		return l.blocks(size, n, float64(c.Inner), lead, reduces), true
	}
	if c.Inner > 0 && float64(c.Inner) < n || c.N > 0 || size < 2 {
		return stage{}, false
	}
	t := newTree(l, n, reduces)
	switch c.Algorithm {
	case submodules.Binomial, "":
		return t.binomial(size, lead), true
	case submodules.Binary:
		return t.binary(size, lead), true
	case submodules.Chain:
		return t.chain(size, lead), true
	case submodules.KChain:
		return t.kchain(size, lead), true
	case submodules.Linear:
		return t.linear(size, lead), c.Submodule == submodules.NBC
	case submodules.KNomial:
		return t.radix(size, 4, lead), !reduces
	case submodules.Rabenseifner:
		x := &exchange{link: l, size: size, lead: lead}
		x.rabenseifner(n, true)
		return x.stage(), reduces
	default:
		return stage{}, false
	}
}

// exchanged returns the stage of an operation that gives all ranks something.
func exchanged(x *exchange, c tasks.Choice, op tasks.Collective, n float64) (stage, bool) {
	if c.Inner > 0 || c.N > 0 || x.size < 2 {
		return stage{}, false
	}
	sums := op != tasks.Allgather
	switch alg := c.Submodule + "/" + c.Algorithm; {
	case alg == "circulant/blocks" && op == tasks.Allreduce && n > 0:
		x.halves(n)
		x.doubles(n)
	case alg == "circulant/blocks" && op == tasks.Allgather, alg == "circulant/blocks" && n == 0, alg == "nbc/dissemination":
		x.doubles(n)
	case alg == "circulant/blocks":
		x.halves(n)
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
	case alg == "nbc/halving":
		x.halves(n)
	case alg == "nbc/rabenseifner" && op == tasks.Allreduce:
		x.rabenseifner(n, false)
	case alg == "nbc/pairwise" && op == tasks.ReduceScatter:
		x.pairwise(n, sums)
	default:
		return stage{}, false
	}
	return x.stage(), true
}
