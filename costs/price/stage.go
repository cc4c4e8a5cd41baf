package price

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// stageOf returns the stage of a phase for a segment of n bytes: of the whole message, or of all blocks
// together. It is false where there is no closed form.
func (p *Pricer) stageOf(o *outline, ph *phase, w way, n float64) (st stage, ok bool) {
	op := ph.Kind.Op
	if p.request.Exchanges() {
		return p.swapStage(o, ph, w, n/float64(p.on.Size()))
	}
	whole, parted := float64(p.request.AllBytes(p.on.Size())), isParted(op)
	if parted || w.Schedule == submodules.AllAtOnce {
		whole /= float64(ph.widest) // each partner gets a part
	}
	g, ok := p.groupOf(o, ph, w, whole)
	if !ok {
		return st, false
	}
	if p.request.Blocks() && (parted || op == tasks.Allgather || op == tasks.ReduceScatter) {
		n *= ph.share
	}
	if parted {
		n /= float64(g.size)
	}
	lanes := 1.0
	if o.shape == tasks.Lanes {
		if p.together == 0 || o.on.Depth() > 2 {
			return st, false
		}
		if !ph.inside {
			lanes = float64(p.together)
			n /= lanes
		}
	}
	message := n
	if op == tasks.Allgather || op == tasks.ReduceScatter {
		message /= float64(g.size)
	}
	if s := newShare(&g, &w, message); s != nil {
		return s.stage(op)
	}
	switch op {
	case tasks.Bcast, tasks.Reduce, tasks.Gather, tasks.Scatter:
		return (&tree{group: g, op: op, n: n, known: p.across}).stage(&w)
	case tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter:
		return (&exchange{group: g, lanes: lanes, skew: ph.skew}).stage(&w, op, n)
	default:
		return st, false
	}
}

// groupOf returns the group of a phase. Its messages to one rank are whole bytes together. It is
// false where nodes have several ranks without numbers in a row.
func (p *Pricer) groupOf(o *outline, ph *phase, w way, whole float64) (g group, ok bool) {
	g = group{size: ph.widest, ranks: 1, close: 1}
	lead := p.lead
	if ph.inside {
		lead, g.close = p.near, g.size
	}
	g.link = p.links[ph.at].withLead(whole, lead)
	packs := w.Schedule == submodules.DigitTree || w.Schedule == submodules.DistanceDoubling
	if !packs && p.cut && p.request.Blocks() && !ph.inside && o.on.Depth() > 1 && p.together > 1 {
		g.link = g.link.inPieces(p.together)
	}
	if ph.inside || g.size <= p.on.Nodes() {
		return g, true
	}
	g.ranks, g.close, g.near = p.together, p.together, p.links[p.on.Depth()-2].withLead(whole, p.near)
	return g, g.ranks > 0
}
