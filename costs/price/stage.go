package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// group returns that of a phase whose messages to one rank are whole bytes together, by a
// way. It is false where nodes have several ranks that aren't numbered one after the other.
func (p *Pricer) group(o *outline, at int, w way, whole float64) (g group, ok bool) {
	g = group{size: o.widest[at], lead: p.lead, ranks: 1, early: p.near, close: 1}
	if o.inside[at] {
		g.lead, g.close = p.near, g.size
	}
	g.link = p.links[p.level(o, o.phases[at])].leading(whole, g.lead)
	packs := w.Schedule == submodules.DigitTree || w.Schedule == submodules.DistanceDoubling
	if !packs && p.cut && p.request.Blocks() && !o.inside[at] && o.on.Depth() > 1 && p.together > 1 {
		g.link = g.link.inPieces(p.together)
	}
	if o.inside[at] || g.size <= p.on.Nodes() {
		return g, true
	}
	g.ranks, g.close, g.near = p.together, p.together, p.links[p.on.Depth()-2].leading(whole, p.near)
	return g, g.ranks > 0
}

// stage returns the stage of a phase for a segment of n bytes: of the whole message, or of all blocks
// together. It is false where there is no closed form.
func (p *Pricer) stage(o *outline, at int, w way, n float64) (st stage, ok bool) {
	op := o.phases[at].Kind.Op
	if p.request.Exchanges() {
		return p.swap(o, at, w, n/float64(p.on.Size()))
	}
	whole, parted := float64(p.request.AllBytes(p.on.Size())), op == tasks.Gather || op == tasks.Scatter
	if parted || w.Schedule == submodules.AllAtOnce {
		whole /= float64(o.widest[at]) // each partner gets a part
	}
	g, ok := p.group(o, at, w, whole)
	if !ok {
		return st, false
	}
	if p.request.Blocks() && (parted || op == tasks.Allgather || op == tasks.ReduceScatter) {
		n *= o.shares[at]
	}
	if parted {
		n /= float64(g.size)
	}
	lanes := 1.0
	if o.shape == tasks.Lanes {
		if p.together == 0 || o.on.Depth() > 2 {
			return st, false
		}
		if !o.inside[at] {
			lanes = float64(p.together)
			n /= lanes
		}
	}
	if s := newShare(&g, &w, n); s != nil {
		return s.stage(op)
	}
	switch op {
	case tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter:
		return (&tree{group: g, op: op, n: n, count: p.across}).stage(&w)
	case tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter:
		return (&exchange{group: g, lanes: lanes, skew: o.skews[at]}).stage(&w, op, n)
	default:
		return st, false
	}
}
