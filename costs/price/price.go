package price

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Pricer prices the plans of one request. It is not for several goroutines at once.
type Pricer struct {
	machine  *machine.Machine
	registry submodules.Registry
	request  tasks.Request
	on       *levels.Topology
	near     float64 // goes to a rank of the node without credit, bytes
	lead     float64 // goes to a rank of another node without credit, bytes
	links    []link  // by level of the topology
	together int     // ranks of the largest node, numbered node by node; 0: they aren't
	known    map[tasks.Shape]*outline
	across   map[way]int       // what passes the busiest node's wire in trees of all ranks, by schedule
	tiers    *levels.Hierarchy // of the shapes that have levels; nil: nobody asked yet
	flat     *levels.Hierarchy // of those that have none; nil: the same

	cut         bool   // the plan that is priced has several segments
	root, inner []load // of stages, by level; nil until a plan is priced
}

// outline is the way of a segment in a shape.
type outline struct {
	shape  tasks.Shape
	on     *levels.Hierarchy
	phases []tasks.Phase
	widest []int     // by phase: ranks of the largest group
	shares []float64 // by phase: share of all ranks that the largest group's members lead; 1 without blocks
	skews  []float64 // by phase: how many times the mean part of its ranks the largest one is; 1 without parts
	inside []bool    // by phase: its groups are inside nodes
	err    error
}

// New returns the pricer of a request's plans by algorithms of reg. A level of the topology that the
// machine has no link for is an error, unless no message uses it.
func New(m *machine.Machine, t *levels.Topology, r tasks.Request, reg submodules.Registry) (*Pricer, error) {
	p := &Pricer{machine: m, registry: reg, request: r, on: t, known: map[tasks.Shape]*outline{}, across: map[way]int{}}
	limits := limitsOf(m)
	p.near, p.lead = float64(max(0, limits.EagerMax)), float64(limits.FarMax())
	p.together = ranksTogether(t)
	for k := range t.Depth() {
		l, err := m.Link(t.Level(k))
		if err != nil && isUsed(t, k) {
			return nil, fmt.Errorf("price on %v: %w", t, err)
		}
		p.links = append(p.links, newLink(m, &l, limits.EagerMax))
	}
	return p, nil
}

// ranksTogether returns how many ranks the largest node has, if ranks are numbered node by node; else
// 0. What the others have less makes no plan's busiest wire busier.
func ranksTogether(t *levels.Topology) (most int) {
	node, count := int32(-1), 0
	seen := make([]bool, t.Nodes())
	for r := range levels.Rank(t.Size()) {
		if at := t.Node(r); at != node {
			if seen[at] {
				return 0
			}
			node, count, seen[at] = at, 0, true
		}
		count++
		most = max(most, count)
	}
	return most
}

// largest returns the share of all ranks that the largest domain of a level has.
func (p *Pricer) largest(level int) float64 {
	count, most := make([]int, p.on.Domains(level)), 0
	for r := range levels.Rank(p.on.Size()) {
		at := p.on.Domain(r, level)
		count[at]++
		most = max(most, count[at])
	}
	return float64(most) / float64(p.on.Size())
}

// isUsed reports whether any two ranks share a domain of level k and none inside it.
func isUsed(t *levels.Topology, k int) bool {
	inside := t.Size()
	if k > 0 {
		inside = t.Domains(k - 1)
	}
	return t.Domains(k) < inside
}

// outline returns the phases of a shape.
func (p *Pricer) outline(plan tasks.Plan) *outline {
	if o := p.known[plan.Shape]; o != nil {
		return o
	}
	o := &outline{shape: plan.Shape}
	p.known[plan.Shape] = o
	r := p.request
	if o.on, o.err = p.hierarchy(plan); o.err != nil {
		return o
	}
	r.Count, r.Pitch, r.Counts, r.Matrix = 0, 0, tasks.Counts{}, tasks.Matrix{}
	g, err := tasks.ExpandOn(r, o.on, tasks.Plan{Shape: plan.Shape, Segment: tasks.Whole, Window: 1, Order: plan.Order}, 0)
	if err != nil {
		o.err = err
		return o
	}
	o.phases = g.Phases
	for _, ph := range g.Phases {
		inside, widest, share, skew := o.on.WithinNodes(ph.Level), o.on.Widest(ph.Level), 1.0, 1.0
		if p.request.Blocks() {
			level := p.level(o, ph)
			if share = p.largest(level); !inside && o.on.Depth() > 1 {
				skew = p.largest(level-1) * float64(widest)
			}
		}
		o.inside, o.widest = append(o.inside, inside), append(o.widest, widest)
		o.shares, o.skews = append(o.shares, share), append(o.skews, skew)
	}
	return o
}

// hierarchy returns that of a shape: all shapes with levels that have prices share one, and
// all without.
func (p *Pricer) hierarchy(plan tasks.Plan) (*levels.Hierarchy, error) {
	if !plan.Shape.Fits(p.request.Coll) {
		return nil, fmt.Errorf("%v has no shape %v", p.request.Coll, plan.Shape)
	}
	kept := &p.tiers
	if plan.Shape.IsFlat() {
		kept = &p.flat
	}
	if *kept == nil {
		h, err := tasks.Hierarchy(p.request, p.on, plan)
		if err != nil {
			return nil, err
		}
		*kept = h
	}
	return *kept, nil
}

// Plan returns the price of a plan, which names shape, segment, window and an algorithm
// for each kind of task. It reports false where there is no closed form.
func (p *Pricer) Plan(plan tasks.Plan) (price Price, ok bool) {
	all, count, ok := p.compose(plan, nil)
	if !ok {
		return price, false
	}
	price.Terms = all.terms(count, float64(plan.Window), p.cores())
	price.NS = price.sum()
	return price, true
}

// Task is what tasks of a kind take in a plan, ns.
type Task struct {
	Kind  tasks.Kind
	First float64 // of the first segment, until the last rank has it
	Each  float64 // of each further one, while nothing else is busier
}

// Tasks returns the tasks that a price is made of, in their order, and of how many segments. It
// reports false where there is no closed form.
func (p *Pricer) Tasks(plan tasks.Plan) (all []Task, segments float64, ok bool) {
	_, segments, ok = p.compose(plan, func(kind tasks.Kind, st *stage) {
		one := Task{Kind: kind, First: st.first.sum()}
		for _, l := range []load{st.root, st.inner} {
			one.Each = max(one.Each, l.in, l.out, l.busy.sum())
		}
		all = append(all, one)
	})
	return all, segments, ok
}

// compose returns the stages of a plan's tasks, and of how many segments. each is called for every
// stage; nil: nothing is.
func (p *Pricer) compose(plan tasks.Plan, each func(tasks.Kind, *stage)) (all stages, count float64, ok bool) {
	if plan.Segment < 1 || plan.Window < 1 || !hasForm(plan.Shape) || plan.Order != tasks.AnyOrder || p.request.Differ() {
		return all, 0, false
	}
	o := p.outline(plan)
	if o.err != nil {
		return all, 0, false
	}
	whole := float64(p.request.Bytes())
	segment := min(float64(plan.Segment), whole)
	count = 1.0
	if segment > 0 {
		count = max(1, whole/segment)
	}
	p.cut = count > 1
	if p.request.Blocks() {
		segment *= float64(p.on.Size())
	}
	if p.root == nil {
		p.root, p.inner = make([]load, len(p.links)), make([]load, len(p.links))
	}
	clear(p.root)
	clear(p.inner)
	all = stages{root: p.root, inner: p.inner}
	for i, ph := range o.phases {
		w, known := p.way(plan, ph.Kind)
		if !known {
			return all, 0, false
		}
		st, ok := p.stage(o, i, w, segment)
		if !ok {
			return all, 0, false
		}
		if all.add(&st, p.level(o, ph)); each != nil {
			each(ph.Kind, &st)
		}
	}
	return all, count, true
}

// hasForm reports whether segments of a shape flow through its phases as they please.
func hasForm(s tasks.Shape) bool {
	switch s {
	case tasks.Flat, tasks.Han, tasks.AR, tasks.RSAG, tasks.SAG, tasks.Lanes, tasks.FlatAR, tasks.FlatRSAG, tasks.FlatSAG:
		return true
	default:
		return false
	}
}

// level returns the topology's level of a phase.
func (p *Pricer) level(o *outline, ph tasks.Phase) int {
	if o.on.Depth() == 1 && o.on.WithinNodes(0) {
		return 0
	}
	return ph.Level + p.on.Depth() - o.on.Depth()
}

// cores returns how many processors all ranks share; 0: each has its own.
func (p *Pricer) cores() float64 {
	c := p.machine.Cores
	n := max(c.InAll, c.PerNode*p.on.Nodes())
	if n >= p.on.Size() {
		return 0
	}
	return float64(n)
}
