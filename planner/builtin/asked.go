package builtin

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Asked is a request on a topology, with only what is equal on all ranks of a call: what decides on
// plans gets no other request. It makes each hierarchy of its plans once. One goroutine uses it at a
// time.
type Asked struct {
	request tasks.Request
	On      *levels.Topology
	known   []grouped
}

// grouped is the ranks in the groups of a shape with an order.
type grouped struct {
	shape   tasks.Shape
	order   tasks.Order
	on      *levels.Hierarchy
	outline *tasks.Graph // nil: nobody asked yet
}

// Ask returns the question for a request on a topology. It is the same on all ranks of a call, also
// if only some of them work in place.
func Ask(r tasks.Request, t *levels.Topology) *Asked { return &Asked{request: r.Shared(), On: t} }

// Request returns the request as all ranks of the call have it.
func (a *Asked) Request() tasks.Request { return a.request }

// Hierarchy is [tasks.Hierarchy] of the request with a plan.
func (a *Asked) Hierarchy(p tasks.Plan) (*levels.Hierarchy, error) {
	g, err := a.group(p)
	if err != nil {
		return nil, err
	}
	return g.on, nil
}

// group returns the ranks in the groups of a plan's shape and order.
func (a *Asked) group(p tasks.Plan) (*grouped, error) {
	for i := range a.known {
		if g := &a.known[i]; g.shape == p.Shape && g.order == p.Order {
			return g, nil
		}
	}
	h, err := tasks.Hierarchy(a.request, a.On, p)
	if err != nil {
		return nil, err // it names all of the plan
	}
	a.known = append(a.known, grouped{shape: p.Shape, order: p.Order, on: h})
	return &a.known[len(a.known)-1], nil
}

// Outline returns the task graph of the request without any elements. Its phases are those
// with elements. Graphs of one shape and order share all but the plan, so nobody changes them.
func (a *Asked) Outline(p tasks.Plan) (*tasks.Graph, error) {
	g, err := a.group(p)
	if err != nil {
		return nil, err
	}
	if g.outline == nil || p.Segment < 1 || p.Window < 1 {
		r := a.request
		r.Count, r.Pitch, r.Counts, r.Matrix = 0, 0, tasks.Counts{}, tasks.Matrix{}
		made, err := tasks.ExpandOn(r, g.on, p, 0)
		if err == nil {
			g.outline = made
		}
		return made, err
	}
	again := *g.outline
	again.Plan = p
	return &again, nil
}

// Fits returns the outline of the request if reg can compile it with p, or else why it cannot.
func (a *Asked) Fits(p tasks.Plan, reg submodules.Registry) (*tasks.Graph, error) {
	g, err := a.Outline(p)
	if err != nil {
		return nil, err
	}
	return g, reg.Supports(g)
}
