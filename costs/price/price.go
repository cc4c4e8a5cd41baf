package price

import (
	"fmt"
	"math/bits"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Price is what a plan takes. NS is the sum of the terms.
type Price struct {
	NS float64
	Terms
}

// Terms are the parts of a price, each in ns.
type Terms struct {
	Latency   float64 // messages are on their way
	Wire      float64 // bytes pass the busiest link
	Processor float64 // the busiest processor handles messages
	Work      float64 // it copies and reduces
	Filling   float64 // the first segment passes through a pipeline of several
	Waiting   float64 // the window is closed
}

// Names lists the terms in words, in the order of [Terms.Values].
func Names() []string {
	return []string{"latency", "bytes on the busiest link", "messages on the busiest processor", "copies and reductions", "filling the pipeline", "a closed window"}
}

// Values lists the terms, in the order of [Names].
func (t *Terms) Values() []float64 {
	return []float64{t.Latency, t.Wire, t.Processor, t.Work, t.Filling, t.Waiting}
}

// sum returns all terms together.
func (t *Terms) sum() float64 {
	return t.Latency + t.Wire + t.Processor + t.Work + t.Filling + t.Waiting
}

// plus returns the terms of one thing after the other.
func (t Terms) plus(u Terms) Terms {
	return Terms{t.Latency + u.Latency, t.Wire + u.Wire, t.Processor + u.Processor, t.Work + u.Work, t.Filling + u.Filling, t.Waiting + u.Waiting}
}

// times returns the terms of a thing done x times.
func (t Terms) times(x float64) Terms {
	return Terms{t.Latency * x, t.Wire * x, t.Processor * x, t.Work * x, t.Filling * x, t.Waiting * x}
}

// later returns the larger one of two.
func later(a, b Terms) Terms {
	if b.sum() > a.sum() {
		return b
	}
	return a
}

// Pricer prices the plans of one request. It is not for several goroutines at once.
type Pricer struct {
	machine  *machine.Machine
	request  tasks.Request
	on       *levels.Topology
	near     float64 // goes to a rank of the node without credit, bytes
	lead     float64 // goes to a rank of another node without credit, bytes
	links    []link  // by level of the topology
	together int     // ranks of the largest node, numbered node by node; 0: they aren't
	known    map[tasks.Shape]*outline
	across   map[tasks.Choice]int // what passes the busiest node's wire in trees of all ranks, by algorithm
	tiers    *levels.Hierarchy    // of the shapes that have levels; nil: nobody asked yet
	flat     *levels.Hierarchy    // of those that have none; nil: the same

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

// New returns the pricer of a request. A level of the topology that the machine has no
// link for is an error, unless no message uses it.
func New(m *machine.Machine, t *levels.Topology, r tasks.Request) (*Pricer, error) {
	p := &Pricer{machine: m, request: r, on: t, known: map[tasks.Shape]*outline{}, across: map[tasks.Choice]int{}}
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
		c, named := plan.For(ph.Kind)
		if !named {
			return all, 0, false
		}
		st, ok := p.stage(o, i, c, segment)
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

// stage is what a phase takes of a segment.
type stage struct {
	first Terms   // from when its ranks may begin until the last one has ended
	root  load    // of the rank that leads all, or of each where all do the same
	inner load    // of the busiest of the others
	total float64 // of all processors together, ns
	lag   float64 // how long a rank keeps a place in its window, ns
}

// load is what a segment takes of a rank.
type load struct {
	in, out float64 // of its wire, ns each way
	busy    Terms   // of its processor: messages and work
}

func (l load) plus(k load) load { return load{l.in + k.in, l.out + k.out, l.busy.plus(k.busy)} }

// alike sets the loads of ranks that all do the same.
func (s *stage) alike(l load) { s.root, s.inner = l, l }

// stages are those of all phases. Wires of different levels don't add up.
type stages struct {
	fill        Terms
	root, inner []load // by level
	total       float64
	lag         float64
}

func (s *stages) add(st *stage, level int) {
	s.fill = s.fill.plus(st.first)
	s.root[level], s.inner[level] = s.root[level].plus(st.root), s.inner[level].plus(st.inner)
	s.total += st.total
	s.lag = max(s.lag, st.lag)
}

// most returns the load of the busiest of wires and processors.
func (s *stages) most() (t Terms) {
	for _, role := range [][]load{s.root, s.inner} {
		var busy Terms
		for _, l := range role {
			busy = busy.plus(l.busy)
			t = later(t, Terms{Wire: max(l.in, l.out)})
		}
		t = later(t, busy)
	}
	return t
}

// terms returns what so many segments take.
func (s *stages) terms(count, window, cores float64) (t Terms) {
	t = s.fill
	if count > 1 {
		each := s.most()
		t = each.times(count)
		t.Filling = max(0, s.fill.sum()-each.sum())
		t.Waiting = max(0, (count/window-1)*s.lag-(count-1)*each.sum())
	}
	if cores > 0 {
		t.Processor = max(t.Processor, s.total*count/cores-t.Work)
	}
	return t
}

// log2 returns how many times a number is halved until it is 1, rounded up.
func log2(n int) int { return bits.Len(uint(max(n, 1) - 1)) }
