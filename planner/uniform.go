package planner

import (
	"fmt"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// unify lets all calls of a new communicator end alike on its ranks, with [Options.Uniform].
func (p *policy) unify(b *base) error {
	if !p.common.Uniform {
		return nil
	}
	r := tasks.Request{Coll: tasks.Barrier}
	d, err := policy{}.choose(r, b.topology, b.registry)
	if err != nil {
		return fmt.Errorf("uniform calls: %w", err)
	}
	barrier, err := submodules.CompileRequest(r, b.topology, d.Plan, b.comm.Rank(), b.registry)
	if err == nil {
		err = b.comm.Seal(barrier.Rest)
	}
	if err != nil {
		return fmt.Errorf("uniform calls: %w", err)
	}
	return nil
}
