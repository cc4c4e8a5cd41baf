package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/submodules"
)

// failStep notes that a step can't be done; it and its successors never end.
func (r *Run) failStep(s *submodules.Step, err error) {
	c := r.comm
	c.blameRank(c.e.rank, &StepError{c.me, r.b.Request, r.prog.Label(s), err})
}

// traceStep notes an ended step, and calls the hook for it.
func (r *Run) traceStep(id dag.ID) {
	now := r.comm.e.world.config.traceTime()
	if r.sampled && r.prog != r.seal { // traces hold data programs only
		r.comm.e.samples.Step(r.number, r.pass, int32(id), r.begun[id], now)
	}
	if hook := r.comm.e.world.config.Hooks.Step; hook != nil {
		hook(trace.Event{
			Source: r.prog, Rank: r.comm.me, Run: r.seq, Pass: r.pass, Step: int32(id), Begin: r.begun[id], End: now,
		})
	}
}

// endStep completes a step and makes its successors ready if they waited for it only.
func (r *Run) endStep(id dag.ID) {
	r.freshSends = 0
	if r.begun != nil {
		r.traceStep(id)
	}
	if invariants.On && (r.flags[id]&ended != 0 || r.stepsLeft <= 0 || r.pending[id] != 0) {
		panic(fmt.Sprintf("executor: %s ends twice or before what it waits for", r.prog.Label(&r.steps[id])))
	}
	if r.b.Ended != nil {
		r.b.Ended(id)
	}
	r.flags[id] |= ended
	r.hasMoved = true
	next := r.prog.Succ(id)
	for i := len(next) - 1; i >= 0; i-- {
		n := next[i]
		r.pending[n]--
		if r.pending[n] == 0 {
			r.ready = append(r.ready, n)
		}
	}
	r.stepsLeft--
}
