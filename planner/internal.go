package planner

import (
	"context"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// internal prepares a collective of this package's own. Forced plans don't apply:
// a plan unable to do this request must not keep it from running.
func (b *base) internal(r tasks.Request, why purpose, buf []byte) (*executor.Run, error) {
	return b.internalBy(policy{}, r, why, buf)
}

// runInternal is internal and a run in one call.
func (b *base) runInternal(ctx context.Context, r tasks.Request, why purpose, buf []byte) error {
	run, err := b.internal(r, why, buf)
	if err != nil {
		return err
	}
	return run.Do(ctx)
}

// alongTree runs a collective of a measurement, always along one binomial tree between nodes.
// After joining, each pair of ranks connects at its first message, and the otherwise best plans
// would make several times as many connections.
func (b *base) alongTree(ctx context.Context, r tasks.Request, buf []byte) error {
	run, err := b.treeCollective(r, buf)
	if err != nil {
		return err
	}
	return run.Do(ctx)
}

// treeCollective makes a collective for alongTree.
func (b *base) treeCollective(r tasks.Request, buf []byte) (*executor.Run, error) {
	p := tasks.Plan{Shape: tasks.Han}
	for k := range b.topology.Depth() {
		if b.topology.Domains(k) < b.topology.Nodes() {
			p = p.Set(string(b.topology.Level(k).Symbol), tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial})
		}
	}
	return b.internalBy(policy{forced: tasks.Forced{{Plan: p}}}, r, machineCall, buf)
}

// internalBy is internal with a policy.
func (b *base) internalBy(p policy, r tasks.Request, why purpose, buf []byte) (*executor.Run, error) {
	d, err := p.choose(r, b.topology, b.registry)
	if err != nil {
		return nil, err
	}
	x, err := b.binding(r, d.Plan, why)
	if err != nil {
		return nil, err
	}
	return b.bindRun(r, x, string(why), nil, buf)
}
