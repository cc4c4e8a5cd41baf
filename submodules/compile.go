package submodules

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Compile lowers the tasks of one rank to its program. size is the number of ranks of the
// communicator. A choice in the plan beyond the registry is an error: an unknown one, or one for
// an operation that it can't do. The error lists the possible ones.
func Compile(g *tasks.Graph, size int, reg Registry) (*Program, error) {
	return new(Compiler).Compile(g, size, reg)
}

// Compiler compiles one program after the other in the same memory. The zero value is
// ready. It is not for several goroutines at once.
type Compiler struct {
	last *Program // nil: none yet
	c    compiler
}

// Compile is like the function [Compile], but the program is good until the next call only.
func (k *Compiler) Compile(g *tasks.Graph, size int, reg Registry) (*Program, error) {
	if k.last == nil {
		k.last = &Program{}
	}
	p, c := k.last, &k.c
	*p = Program{
		Rank: g.Rank, Size: size, Request: g.Request, Plan: g.Plan, Tasks: g,
		Peers: p.Peers[:0], peerOf: slices.Grow(p.peerOf[:0], size)[:size],
	}
	for i := range p.peerOf {
		p.peerOf[i] = -1
	}
	c.prog, c.reg, c.segment = p, reg, segmentMark{}
	c.ends = slices.Grow(c.ends[:0], g.Len())[:g.Len()]
	c.emitter.reset(p, len(g.Phases)*min(g.Plan.Window, g.Segments))
	c.emitter.scratch.size = g.Partial
	c.emitter.graph.Grow(4*g.Len(), 8*g.Len())
	err := c.resolveAll(g)
	if err == nil {
		err = c.lowerAll(g)
	}
	if err != nil {
		return nil, err
	}
	if p.Frozen, err = c.emitter.graph.Freeze(nil); err != nil {
		return nil, fmt.Errorf("%v with plan %q: %w", g.Request, g.Plan, err)
	}
	p.steps = c.emitter.graph.Nodes()
	p.Scratch, p.Slots, p.Backup = c.emitter.scratch.size, c.emitter.slots.size, c.emitter.backup.size
	p.trim(g.Partial)
	return p, nil
}

// trim gives back the n bytes for partial results if no step uses them: the
// leaves of a tree only send.
func (p *Program) trim(n int64) {
	var all []*tasks.Span // in scratch
	for i := range p.steps {
		s := &p.steps[i]
		for _, span := range []*tasks.Span{&s.Dst, &s.A, &s.B} {
			if span.Region != tasks.Scratch {
				continue
			}
			if span.Off < n {
				return
			}
			all = append(all, span)
		}
	}
	for _, span := range all {
		span.Off -= n
	}
	p.Scratch -= n
}

type ends struct{ ready, done []dag.ID }

type compiler struct {
	prog    *Program
	reg     Registry
	emitter Emitter
	ends    []ends     // by task
	phases  []resolved // by phase
	call    Call       // the open task's
	segment segmentMark
}

// segmentMark is how large the program was when the current segment began.
type segmentMark struct {
	index        int32
	steps, edges int
}

// resolved is the submodule that lowers the tasks of a phase, and how.
type resolved struct {
	sub  Submodule
	call Call
}

func (c *compiler) lowerAll(g *tasks.Graph) error {
	edges := g.Edges() // sorted by their later end: a task's edges come right after it
	window := min(g.Plan.Window, g.Segments)
	var data, slots []dag.ID
	for id := range dag.ID(g.Len()) {
		data, slots = data[:0], slots[:0]
		for ; len(edges) > 0 && edges[0].To == id; edges = edges[1:] {
			switch e := edges[0]; e.Kind {
			case tasks.DataEdge:
				data = append(data, c.ends[e.From].ready...)
			case tasks.SlotEdge, tasks.StageEdge:
				slots = append(slots, c.ends[e.From].done...)
			}
		}
		c.reserve(g.Node(id).Segment, window, g.Segments)
		c.emitter.begin(id, append(data, slots...), len(data))
		if err := c.lower(g, id, window); err != nil {
			return err
		}
	}
	return nil
}

// reserve makes room for all further segments once a typical one has been lowered: the first to
// wait for its slot. Growing bit by bit would copy every step several times.
func (c *compiler) reserve(segment int32, window, segments int) {
	if segment == c.segment.index {
		return
	}
	graph := &c.emitter.graph
	now := segmentMark{segment, graph.Len(), len(graph.Edges())}
	if int(segment) == window+1 {
		left := segments - int(segment)
		graph.Grow(left*(now.steps-c.segment.steps), left*(now.edges-c.segment.edges))
	}
	c.segment = now
}

func (c *compiler) lower(g *tasks.Graph, id dag.ID, window int) error {
	t := g.Node(id)
	e, slot := &c.emitter, int(t.Phase)*window+int(t.Segment)%window
	k := &c.phases[t.Phase]
	c.call = k.call
	c.call.Task, c.call.Me = *t, t.Group.Pos(g.Rank)
	e.scratch.begin(slot)
	e.slots.begin(slot)
	e.backup.begin(slot)
	if err := c.lowerBlocks(g, t, k.sub); err != nil {
		return fmt.Errorf("lower %v with %s/%s: %w", t, k.sub.Name(), c.call.Algorithm, err)
	}
	c.ends[id].ready, c.ends[id].done = e.end()
	return nil
}

// lowerBlocks lowers a task and tells the submodule of data that doesn't lie together. A bcast
// or reduce of blocks takes one after the other, in one task.
func (c *compiler) lowerBlocks(g *tasks.Graph, t *tasks.Task, sub Submodule) error {
	switch {
	case t.Kind.Op.Exchanges():
		c.call.Out, c.call.In = g.Exchange(t)
		return sub.Lower(&c.emitter, &c.call)
	case g.Divided(t):
		return c.lowerParts(g, t, sub)
	case g.Request.Coll.Scans():
		return c.lowerScan(g, t, sub)
	case !g.Request.Blocks():
		return sub.Lower(&c.emitter, &c.call)
	}
	src, dst := g.Runs(t)
	for i := range src {
		c.call.Src, c.call.Dst = src[i], dst[i]
		if err := sub.Lower(&c.emitter, &c.call); err != nil {
			return err
		}
	}
	return nil
}

// lowerScan lowers a scan's task. The sum that a rank hands to the next one of its group is not ready
// for a later task below the outermost level: a prefix task writes over it. The leader hands on none.
func (c *compiler) lowerScan(g *tasks.Graph, t *tasks.Task, sub Submodule) error {
	c.call.Scan = g.Scanned(t)
	err := sub.Lower(&c.emitter, &c.call)
	if t.Kind.Op != tasks.Prefix && t.Group.Lead() != g.Rank && !g.IsOutermost(t) {
		c.emitter.ready = c.emitter.ready[:0]
	}
	return err
}

func (c *compiler) lowerParts(g *tasks.Graph, t *tasks.Task, sub Submodule) error {
	parts, held := g.Parts(t)
	for i, part := range parts {
		parts[i] = c.call.cut(part)
	}
	c.call.Parts, c.call.Held = parts, c.call.cut(held)
	c.call.Full = g.Request.Coll == tasks.Bcast && t.Kind.Op == tasks.Allgather && g.Rank == g.Request.Root
	if t.Kind.Op == tasks.ReduceScatter && g.Request.Blocks() && t.Src.Region == t.Dst.Region {
		return c.lowerOver(sub)
	}
	err := sub.Lower(&c.emitter, &c.call)
	if t.Kind.Op == tasks.ReduceScatter && t.Src.Region == t.Dst.Region {
		c.emitter.ready = c.emitter.ready[:0] // the next task writes over all parts
	}
	return err
}

// lowerOver lowers a reduce-scatter into memory that holds other ranks' parts of the input: the
// result comes together in scratch and is copied when all else is done.
func (c *compiler) lowerOver(sub Submodule) error {
	e, final := &c.emitter, c.call.Held
	c.call.Held = make([]tasks.Span, len(final))
	for i, s := range final {
		c.call.Held[i] = e.Scratch(s.Len)
	}
	if err := sub.Lower(e, &c.call); err != nil {
		return err
	}
	all := e.Join(e.appendSinks(nil)...)
	e.ready = e.ready[:0]
	for i, s := range final {
		e.Ready(e.Copy(s, c.call.Held[i], all))
	}
	return nil
}

// resolveAll checks the choices for all phases, even those without a task for this rank: so a
// plan is refused by all ranks or by none.
func (c *compiler) resolveAll(g *tasks.Graph) error {
	c.phases = slices.Grow(c.phases[:0], len(g.Phases))[:len(g.Phases)]
	for i, ph := range g.Phases {
		var err error
		if c.phases[i], err = c.resolve(g, ph); err != nil {
			return fmt.Errorf("%v: %w", g.Request, err)
		}
	}
	return nil
}

// resolve finds the submodule and the algorithm for the tasks of a phase, and checks the choice.
func (c *compiler) resolve(g *tasks.Graph, ph tasks.Phase) (k resolved, err error) {
	sub, algo, choice, err := c.reg.resolve(g.Plan, ph.Kind)
	if err != nil {
		return k, err
	}
	if sub.Reach() == SharedNode && !g.On.WithinNodes(ph.Level) {
		return k, fmt.Errorf("%v=%v: %s works between ranks that share memory: %w on level %q; for %v between nodes there is %s",
			ph.Kind, choice, sub.Name(), ErrUnsupported, g.On.Level(ph.Level).Name, ph.Kind.Op, c.reg.offers(ph.Kind.Op, Anywhere))
	}
	for _, r := range algo.Needs {
		if !holds(r, g, ph) {
			return k, fmt.Errorf("%v=%v: %s/%s does %v: %w", ph.Kind, choice, sub.Name(), algo.Name, r, ErrUnsupported)
		}
	}
	if g.Plan.Order == tasks.TreeOrder && !algo.keepsTree(ph.Kind.Op) && combines(g, ph) {
		return k, fmt.Errorf("%v=%v: %s/%s doesn't keep order=tree: %w; for %v there is %s",
			ph.Kind, choice, sub.Name(), algo.Name, ErrUnsupported, ph.Kind.Op, c.reg.keepTree(ph.Kind.Op))
	}
	k.sub = sub
	k.call = Call{Algorithm: algo.Name, N: choice.N, Eager: g.Plan.Eager, Elem: 1, On: g.On.Topology()}
	if g.Request.Coll.HasData() {
		k.call.Elem = int64(g.Request.Type.Size())
	}
	if choice.Inner > 0 {
		k.call.Inner = max(1, choice.Inner/k.call.Elem) * k.call.Elem
	}
	return k, nil
}

// holds tells whether all groups of a phase meet a restriction, so that all ranks come to the
// same answer. Tasks that don't combine data meet the restrictions about order, and so do
// commutative ones. Scans do too: they keep the order under any leader.
func holds(r Restriction, g *tasks.Graph, ph tasks.Phase) bool {
	groups := g.Groups(ph)
	none := func(is func(g *levels.Group) bool) bool { return !slices.ContainsFunc(groups, is) }
	switch op := ph.Kind.Op; r {
	case NeedsPowerOfTwo:
		return op != tasks.Allgather && op != tasks.ReduceScatter ||
			none(func(g *levels.Group) bool { return len(g.Ranks)&(len(g.Ranks)-1) != 0 })
	case NeedsNoData:
		return op != tasks.Allreduce || !g.Request.Coll.HasData()
	case NeedsDense:
		return op != tasks.Alltoall || g.IsDense(ph)
	case NeedsEven:
		return op != tasks.Allgather || none(func(g *levels.Group) bool { return len(g.Ranks) > 1 && len(g.Ranks)%2 != 0 })
	}
	if !combines(g, ph) || g.Request.Op.Commutative() || ph.Kind.Op.Scans() {
		return true
	}
	return r == NeedsRootFirst && none(func(g *levels.Group) bool { return g.Leader != 0 })
}

// combines reports whether tasks of a phase combine data.
func combines(g *tasks.Graph, ph tasks.Phase) bool {
	return ph.Kind.Op.Reduces() && g.Request.Reduces()
}

// CompileFor expands a request of at most [tasks.MaxSegments] segments and
// compiles it for one rank.
func CompileFor(r tasks.Request, h *levels.Hierarchy, p tasks.Plan, rank levels.Rank, reg Registry) (*Program, error) {
	g, err := tasks.ExpandOn(r, h, p, rank)
	if err != nil {
		return nil, err
	}
	return Compile(g, h.Topology().Size(), reg)
}
