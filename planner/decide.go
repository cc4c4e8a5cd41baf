package planner

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// decision is a plan with its reasons.
type decision struct {
	plan   tasks.Plan
	forced tasks.Plan // the part that was forced
	origin string     // by whom
	why    []string   // of the rest
	advice *advice    // of a table; nil without one
}

// decide chooses the plan for a request: what is forced, completed by the table,
// or else by the built-in rule.
func (c *Comm) decide(r tasks.Request) (*decision, error) {
	if d := c.memo.find(r); d != nil {
		return d, nil
	}
	d, err := decide(r, c.topology, c.forced, c.origin, c.registry, c.table)
	if err != nil {
		return nil, err
	}
	c.memo.put(r, &d)
	return &d, nil
}

func decide(r tasks.Request, t *levels.Topology, f tasks.Forced, origin string, reg submodules.Registry, table *loadedTable) (decision, error) {
	if err := r.Validate(t.Size()); err != nil {
		return decision{}, fmt.Errorf("%v: %w", r, err)
	}
	forced := f.For(r.Coll)
	base, why := Rule(r, t)
	d := decision{plan: forced.Over(base), forced: forced, origin: origin, why: why}
	if table != nil {
		d.consult(table, r, t, base, reg)
	}
	if err := reg.Check(d.plan); err != nil {
		return d, fmt.Errorf("%v: %w", r, err)
	}
	return d, nil
}

// Sizes of the built-in rule, bytes.
const (
	smallMessage  = 16 << 10  // below, latency counts: one segment, shallow trees
	insideSegment = 128 << 10 // inside a node: a segment stays in a core's cache
	betweenMost   = 512 << 10 // between nodes: larger segments only delay the pipeline
	betweenLeast  = 64 << 10
	leastPart     = 1 << 10 // of a block: smaller ones are all overhead
)

// Rule is the plan while there are no measurements, and why. It follows HAN's
// reasoning (section III): shared memory inside nodes, event-driven trees between
// them, a chain once there are enough segments to fill it, and no hierarchy where
// it would break the order of a non-commutative operation.
func Rule(r tasks.Request, t *levels.Topology) (tasks.Plan, []string) {
	bytes := int64(0)
	if r.Coll != tasks.Barrier {
		bytes = r.Bytes()
	}
	if r.Blocks() {
		return blocksRule(r, t)
	}
	p := tasks.Plan{Shape: tasks.Han, Window: 4, Segment: tasks.Whole}
	why := []string{"shape=han: shared memory inside nodes, messages only between leaders"}
	if r.Reduces() && !r.Op.Commutative() && !t.Hierarchy(0).Ordered() {
		p.Shape = tasks.Flat
		why = []string{"shape=flat: " + r.Op.String() + " is not commutative and ranks are not numbered node by node"}
	}
	between, inside := tasks.Choice{Submodule: "adapt", Algorithm: "binomial"}, tasks.Choice{Submodule: "sm"}
	switch nodes := t.Nodes(); {
	case bytes <= smallMessage:
		why = append(why, fmt.Sprintf("fs=all, binomial: up to %s latency counts", tasks.FormatBytes(smallMessage)))
	case nodes == 1:
		p.Segment = insideSegment
		why = append(why, fmt.Sprintf("fs=%s: one node, segments stay in cache", tasks.FormatBytes(p.Segment)))
	default:
		p.Segment = betweenSegment(bytes)
		between.Algorithm = "chain"
		why = append(why, fmt.Sprintf("fs=%s, chain: an eighth of the message, so that %d nodes form a pipeline", tasks.FormatBytes(p.Segment), nodes))
	}
	if r.Coll == tasks.Reduce && !r.Op.Commutative() && r.Root != 0 {
		between.Algorithm = "inorderbinary"
		inside = between
		why = append(why, fmt.Sprintf("inorderbinary: it keeps the order of ranks for %v, whichever rank leads", r.Op))
	}
	for k := range t.Depth() {
		choice := between
		if t.Hierarchy(0).WithinNodes(k) && p.Shape == tasks.Han {
			choice = inside
		}
		p = p.Set(string(t.Level(k).Symbol), choice)
	}
	return p, why
}

// blocksRule is [Rule] for collectives of blocks. Segments cut through all blocks,
// so that they count times the ranks.
func blocksRule(r tasks.Request, t *levels.Topology) (tasks.Plan, []string) {
	ranks := int64(t.Size())
	p := tasks.Plan{Shape: tasks.Han, Window: 4, Segment: tasks.Whole}
	why := []string{"shape=han: blocks are collected in shared memory, and nodes exchange them between leaders"}
	exchange := tasks.Choice{Submodule: "nbc", Algorithm: "bruck"}
	between := tasks.Choice{Submodule: "adapt", Algorithm: "binomial"}
	if all := r.Bytes() * ranks; all <= smallMessage {
		why = append(why, fmt.Sprintf("fs=all, bruck: up to %s in all blocks latency counts", tasks.FormatBytes(smallMessage)))
	} else {
		exchange = tasks.Choice{Submodule: "adapt", Algorithm: "ring"}
		if p.Segment = insideSegment; t.Nodes() > 1 {
			p.Segment = max(betweenSegment(all)/ranks, leastPart)
		}
		why = append(why, fmt.Sprintf("fs=%s of each block, ring: each link carries every block once", tasks.FormatBytes(p.Segment)))
	}
	if r.Coll == tasks.Gather {
		why[0] = "shape=han: blocks are collected in shared memory, and leaders send those of their nodes to the root"
		why[1] = fmt.Sprintf("fs=%s of each block, linear: a block crosses each level once", tasks.FormatBytes(p.Segment))
	}
	for k := range t.Depth() {
		symbol := string(t.Level(k).Symbol)
		if t.Hierarchy(0).WithinNodes(k) {
			p = p.Set(symbol, tasks.Choice{Submodule: "sm"})
			continue
		}
		p = p.Set(symbol, between).Set(symbol+"g", tasks.Choice{Submodule: "adapt", Algorithm: "linear"}).Set(symbol+"ag", exchange)
	}
	return p, why
}

// betweenSegment is the power of two near an eighth of the message.
func betweenSegment(bytes int64) int64 {
	s := int64(betweenLeast)
	for s < betweenMost && s*16 <= bytes {
		s *= 2
	}
	return s
}

// Explain says what was chosen for this collective, by whom and why, and what the
// alternatives are.
func (c *Collective) Explain() string {
	return c.decision.explain(c.request, c.comm.topology, c.comm.registry)
}

// Explain says what [Collective.Explain] would for a request on a topology,
// without ranks or buffers.
func Explain(r tasks.Request, t *levels.Topology, o *Options) (string, error) {
	if o == nil {
		o = &Options{}
	}
	registry := all.Submodules()
	forced, origin, err := o.forced(registry)
	if err != nil {
		return "", err
	}
	table, err := o.table(registry)
	if err != nil {
		return "", err
	}
	d, err := decide(r, t, forced, origin, registry, table)
	if err != nil {
		return "", err
	}
	return d.explain(r, t, registry), nil
}

func (d *decision) explain(r tasks.Request, t *levels.Topology, reg submodules.Registry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v on %v\n", r, t)
	fmt.Fprintf(&b, "  plan: %v\n", d.plan)
	if f := d.forced.String(); f != "" {
		fmt.Fprintf(&b, "  forced by %s: %s\n", d.origin, f)
	}
	for _, w := range d.why {
		fmt.Fprintf(&b, "  rule: %s\n", w)
	}
	d.advice.explain(&b)
	for _, s := range tasks.Shapes() {
		if s != d.plan.Shape {
			fmt.Fprintf(&b, "  alternative: shape=%v\n", s)
		}
	}
	for k := range t.Depth() {
		kind := tasks.Kind{Symbol: t.Level(k).Symbol, Op: tasks.Bcast}
		switch r.Coll {
		case tasks.Reduce, tasks.Allgather, tasks.Gather:
			kind.Op = r.Coll
		}
		reach := t.Hierarchy(0).WithinNodes(k)
		fmt.Fprintf(&b, "  alternative: %c= %s\n", kind.Symbol, reg.Offers(kind.Op, reach))
	}
	return b.String()
}
