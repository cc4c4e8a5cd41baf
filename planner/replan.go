package planner

import "fmt"

// Replan decides the collective again, such as after [Comm.Set], and reports whether that chose
// another plan. It is compiled then, for the same buffers. All ranks call Replan in the order of
// creating collectives, and none while the collective runs. No message is sent. After an
// error the collective has its plan still.
func (c *Collective) Replan() (changed bool, err error) {
	c.mustBeMade()
	if err := c.rebind(c.send, c.recv); err != nil { // it runs
		return false, fmt.Errorf("%v: replan: %w", c.request, err)
	}
	d, err := c.comm.decide(&c.request, &c.comm.base)
	if err != nil || d.Plan.Equal(c.decision.Plan) {
		return false, err
	}
	next, err := c.comm.prepareBy(d, c.request, userCall, c.send, c.recv)
	if err != nil {
		return false, fmt.Errorf("%v: replan: %w", c.request, err)
	}
	c.adopt(next)
	return true, nil
}
