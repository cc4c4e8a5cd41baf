package tasks

import "github.com/tierflow/tierflow/levels"

// Cut is a request as ranks run it: on the hierarchy of its plan, in passes that one graph can
// hold.
type Cut struct {
	On     *levels.Hierarchy
	Whole  Request // runs Passes times, each offset from the one before; see [Passes]
	Passes int64   // 0: Rest is the whole request
	Rest   Request // runs once, in the end
}

// CutRequest returns the cut of a request by a plan.
func CutRequest(r Request, t *levels.Topology, p Plan) (c Cut, err error) {
	if c.On, err = Hierarchy(r, t, p); err != nil {
		return c, err
	}
	c.Whole, c.Passes, c.Rest, err = Passes(r, p)
	return c, err
}

// Parts lists the different requests in their order: whole if there is one, then rest.
func (c Cut) Parts() []Request {
	if c.Passes == 0 {
		return []Request{c.Rest}
	}
	return []Request{c.Whole, c.Rest}
}
