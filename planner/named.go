package planner

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// prepareNamed is raw.PrepareNamed.
func (c *Comm) prepareNamed(name string, r tasks.Request, send, recv []byte, like *Collective) (*Collective, error) {
	r, err := c.checkRaw(r, send, recv)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("%v: %w", r, errNoName)
	}
	if like == nil {
		d, err := c.decide(&r, &c.base)
		if err != nil {
			return nil, err
		}
		b, err := c.binding(r, d.Plan, purpose(name))
		if err != nil {
			return nil, err
		}
		return c.bind(d, r, b, r.Coll.String(), send, recv)
	}
	if like.comm != c || like.request != r {
		return nil, fmt.Errorf("%s: %v is of another communicator than what is alike, or isn't %v", name, r, like.request)
	}
	b := c.description(r, like.decision.Plan)
	b.Compiled, b.Request = like.compiled, name
	b.Digest = submodules.Digest(name, r, c.topology, like.decision.Plan)
	return c.bind(&like.decision, r, b, r.Coll.String(), send, recv)
}

var errNoName = errors.New("a collective without a name; give one, or call Prepare")

// Predict returns how long a call is thought to take on this communicator, ns, by a decision
// table or by prices on a known machine. Without these, and with a forced plan, it isn't known.
// All ranks get the same.
func (c *Comm) Predict(r tasks.Request) (ns float64, known bool, err error) {
	if err := c.checkMade(); err != nil {
		return 0, false, fmt.Errorf("%v: %w", r, err)
	}
	d, err := c.decide(&r, &c.base)
	if err != nil {
		return 0, false, err
	}
	ns, known = d.Predicted()
	return ns, known, nil
}
