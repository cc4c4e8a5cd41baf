package price

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/executor/flow"
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

	// Of the plans until now. All priced shapes with levels share a hierarchy, and all without.
	outlines    map[tasks.Shape]*outline
	hierarchies map[bool]*levels.Hierarchy // by whether a shape is flat
	across      map[way]int                // what passes the busiest node's wire in trees of all ranks

	cut         bool   // the plan has several segments
	root, inner []load // of stages, by level
}

// outline is the way of a segment in a shape.
type outline struct {
	shape  tasks.Shape
	on     *levels.Hierarchy
	phases []phase
	err    error
}

// phase is a phase of an outline.
type phase struct {
	tasks.Phase
	at     int     // its level in the topology
	inside bool    // its groups are inside nodes
	widest int     // ranks of the largest group
	share  float64 // of all ranks, led by the largest group's members; 1 without blocks
	skew   float64 // how many times the mean part of its ranks the largest one is; 1 without parts
}

// New returns the pricer of a request's plans by algorithms of reg. A level of the topology without a
// link of the machine is an error, unless no message uses it.
func New(m *machine.Machine, t *levels.Topology, r tasks.Request, reg submodules.Registry) (*Pricer, error) {
	limits := flow.NewLimits(m.EagerMax, m.Budget)
	p := &Pricer{
		machine: m, registry: reg, request: r, on: t, together: ranksTogether(t),
		near: float64(max(0, limits.EagerMax)), lead: float64(limits.FarMax()),
		outlines: map[tasks.Shape]*outline{}, hierarchies: map[bool]*levels.Hierarchy{}, across: map[way]int{},
		root: make([]load, t.Depth()), inner: make([]load, t.Depth()),
	}
	for k := range t.Depth() {
		l, err := m.Link(t.Level(k))
		if err != nil && t.IsUsed(k) {
			return nil, fmt.Errorf("price on %v: %w", t, err)
		}
		p.links = append(p.links, newLink(m, &l, p.near))
	}
	return p, nil
}

// ranksTogether returns how many ranks the largest node has, if ranks are numbered node by node; else
// 0. Smaller nodes make no plan's busiest wire busier.
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

// largestShare returns the share of all ranks that the largest domain of a level has.
func (p *Pricer) largestShare(level int) float64 {
	count, most := make([]int, p.on.Domains(level)), 0
	for r := range levels.Rank(p.on.Size()) {
		at := p.on.Domain(r, level)
		count[at]++
		most = max(most, count[at])
	}
	return float64(most) / float64(p.on.Size())
}

// outlineOf returns the phases of a plan's shape.
func (p *Pricer) outlineOf(plan tasks.Plan) *outline {
	o := p.outlines[plan.Shape]
	if o == nil {
		o = &outline{shape: plan.Shape}
		o.err = p.expand(o, plan)
		p.outlines[plan.Shape] = o
	}
	return o
}

// expand enters the phases of a plan's shape.
func (p *Pricer) expand(o *outline, plan tasks.Plan) (err error) {
	if o.on, err = p.hierarchyOf(plan); err != nil {
		return err
	}
	r := p.request
	r.Count, r.Pitch, r.Counts, r.Matrix = 0, 0, tasks.Counts{}, tasks.Matrix{}
	g, err := tasks.ExpandOn(r, o.on, tasks.Plan{Shape: plan.Shape, Segment: tasks.Whole, Window: 1, Order: plan.Order}, 0)
	if err != nil {
		return err
	}
	for _, ph := range g.Phases {
		one := phase{Phase: ph, at: p.levelOf(o, ph), inside: o.on.WithinNodes(ph.Level), widest: o.on.Widest(ph.Level), share: 1, skew: 1}
		if p.request.Blocks() {
			if one.share = p.largestShare(one.at); !one.inside && o.on.Depth() > 1 {
				one.skew = p.largestShare(one.at-1) * float64(one.widest)
			}
		}
		o.phases = append(o.phases, one)
	}
	return nil
}

// hierarchyOf returns the hierarchy of a plan's shape.
func (p *Pricer) hierarchyOf(plan tasks.Plan) (*levels.Hierarchy, error) {
	if !plan.Shape.Fits(p.request.Coll) {
		return nil, fmt.Errorf("%v has no shape %v", p.request.Coll, plan.Shape)
	}
	flat := plan.Shape.IsFlat()
	if p.hierarchies[flat] == nil {
		h, err := tasks.Hierarchy(p.request, p.on, plan)
		if err != nil {
			return nil, err
		}
		p.hierarchies[flat] = h
	}
	return p.hierarchies[flat], nil
}

// levelOf returns the topology's level of a phase.
func (p *Pricer) levelOf(o *outline, ph tasks.Phase) int {
	if o.on.Depth() == 1 && o.on.WithinNodes(0) {
		return 0
	}
	return ph.Level + p.on.Depth() - o.on.Depth()
}

// Plan returns the price of a plan with a shape, a segment, a window and an algorithm for each kind
// of task. It reports false where there is no closed form.
func (p *Pricer) Plan(plan tasks.Plan) (price Price, ok bool) {
	all, count, ok := p.compose(plan, nil)
	if !ok {
		return price, false
	}
	price.Terms = all.terms(count, float64(plan.Window), p.sharedCores())
	price.NS = price.sum()
	return price, true
}

// Task is what tasks of a kind take in a plan, ns.
type Task struct {
	Kind  tasks.Kind
	First float64 // of the first segment, until the last rank has it
	Each  float64 // of each further one, while nothing else is busier
}

// Tasks returns the tasks of a price, in their order, and of how many segments. It reports false where
// there is no closed form.
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
func (p *Pricer) compose(plan tasks.Plan, each func(tasks.Kind, *stage)) (all sums, count float64, ok bool) {
	if plan.Segment < 1 || plan.Window < 1 || !slices.Contains(flowing, plan.Shape) || plan.Order != tasks.AnyOrder || p.request.Differ() {
		return all, 0, false
	}
	o := p.outlineOf(plan)
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
	clear(p.root)
	clear(p.inner)
	all = sums{root: p.root, inner: p.inner}
	for i := range o.phases {
		ph := &o.phases[i]
		w, known := wayOf(p.registry, plan, ph.Kind)
		if !known {
			return all, 0, false
		}
		st, ok := p.stageOf(o, ph, w, segment)
		if !ok {
			return all, 0, false
		}
		if all.addStage(&st, ph.at); each != nil {
			each(ph.Kind, &st)
		}
	}
	return all, count, true
}

// flowing are the shapes in which segments flow through the phases as they please.
var flowing = []tasks.Shape{
	tasks.Flat, tasks.Han, tasks.AR, tasks.RSAG, tasks.SAG, tasks.Lanes, tasks.FlatAR, tasks.FlatRSAG, tasks.FlatSAG,
}

// sharedCores returns how many processors all ranks share; 0: each has its own.
func (p *Pricer) sharedCores() float64 {
	c := p.machine.Cores
	n := max(c.InAll, c.PerNode*p.on.Nodes())
	if n >= p.on.Size() {
		return 0
	}
	return float64(n)
}
