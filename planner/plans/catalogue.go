package plans

import (
	"slices"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// catalogueInners are inner segments of algorithms with one, bytes; 0: none.
var catalogueInners = []int64{0, 32 << 10}

// catalogueWindow is the least window of a catalogue's plans, in segments.
const catalogueWindow = 8

// All lists the catalogue for a request: [Rivals], and every shape with every algorithm between nodes, cut
// as the built-in rule's plan ruled is and not at all. Inside nodes the latter have the choices of ruled.
// ruled is in the list. Each plan is there once, in the words of [Named]. Plans that reg can't compile
// are left out.
func All(asked *builtin.Asked, ruled tasks.Plan, reg submodules.Registry) []tasks.Plan {
	c := catalogue{asked: asked, reg: reg, seen: map[string]bool{}}
	c.add(ruled)
	for _, p := range Rivals(asked, ruled) {
		c.add(p)
	}
	var inside tasks.Plan
	top := asked.On.Level(asked.On.Depth() - 1).Symbol
	for _, key := range ruled.Keys() {
		if key[0] != top {
			choice, _ := ruled.Choice(key)
			inside = inside.Set(key, choice)
		}
	}
	for _, shape := range tasks.ShapesOf(asked.Request().Coll) {
		if !c.isSame(shape, ruled.Shape) {
			c.combine(shape, ruled, inside)
		}
	}
	return c.all
}

// catalogue is a list of plans in the making.
type catalogue struct {
	asked *builtin.Asked
	reg   submodules.Registry
	seen  map[string]bool // by a plan's words
	all   []tasks.Plan
}

// isSame reports whether plans of a shape are those of another one, with one rank a node.
func (c *catalogue) isSame(shape, ruled tasks.Shape) bool {
	isAlone, isOne := c.asked.On.Nodes() == c.asked.On.Size(), c.asked.On.Nodes() == 1
	switch {
	case !shape.IsFlat():
		return false
	case shape == tasks.Flat:
		return isAlone && ruled == tasks.Han
	default:
		return isAlone || isOne
	}
}

// combine adds every combination of algorithms between nodes with a shape.
func (c *catalogue) combine(shape tasks.Shape, ruled, inside tasks.Plan) {
	bare, err := c.asked.Outline(tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 1})
	if err != nil {
		return
	}
	for _, inner := range catalogueInners {
		for _, base := range (Combinations{Registry: c.reg, Inner: inner}).On(bare, tasks.Plan{Shape: shape}) {
			for _, p := range append([]tasks.Plan{base}, Variants(bare, base, c.reg, nil, false)...) {
				p = inside.Over(p)
				for _, segment := range []int64{ruled.Segment, tasks.Whole} {
					p.Segment, p.Window = segment, max(ruled.Window, catalogueWindow)
					c.add(p)
				}
			}
		}
	}
}

// add adds a plan once, if it can be compiled.
func (c *catalogue) add(p tasks.Plan) {
	p = Named(c.asked, p, c.reg)
	if text := p.String(); !c.seen[text] {
		c.seen[text] = true
		if _, err := c.asked.Fits(p, c.reg); err == nil {
			c.all = append(c.all, p)
		}
	}
}

// Named says a plan in words for comparisons: an algorithm for each kind of task, and no segment or
// window without effect. A plan without tasks stays as it is.
func Named(asked *builtin.Asked, p tasks.Plan, reg submodules.Registry) tasks.Plan {
	g, err := asked.Outline(p)
	if err != nil {
		return p
	}
	q := tasks.Plan{Shape: p.Shape, Segment: p.Segment, Window: p.Window, Order: p.Order}
	for _, ph := range g.Phases {
		c, ok := p.For(ph.Kind)
		if ok && c.Algorithm == "" {
			c.Algorithm = algorithmFor(reg, c, ph.Kind.Op)
		}
		if ok {
			q = q.Set(ph.Kind.String(), c)
		}
	}
	return table.Canonical(q, asked.Request().Bytes())
}

// algorithmFor is the name of a submodule's first algorithm for an operation.
func algorithmFor(reg submodules.Registry, c tasks.Choice, op tasks.Collective) string {
	m, err := reg.Find(c.Submodule)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(m.Algorithms(), func(a submodules.Algorithm) bool { return a.Does(op) })
	if i < 0 {
		return ""
	}
	return m.Algorithms()[i].Name
}
