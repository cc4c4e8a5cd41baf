package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// advanceSteps executes a burst of ready steps, fewer if there are no more or the run ends. Only
// the driver calls it.
func (r *Run) advanceSteps() {
	r.freshSends = 0
	for n := 0; n < flow.Burst && !r.isStopped(); n++ {
		if r.stepsLeft == 0 {
			if r.parked {
				return
			}
			r.pass++
			r.beginPass()
			if r.finished || r.parked {
				return
			}
		}
		if len(r.ready) == 0 {
			return
		}
		if invariants.On {
			r.shuffle()
		}
		id := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		r.executeStep(id)
	}
}

// shuffle puts any ready step on top, so nothing comes to depend on the order of ready steps.
func (p *running) shuffle() {
	i, last := rand.IntN(len(p.ready)), len(p.ready)-1
	p.ready[i], p.ready[last] = p.ready[last], p.ready[i]
}

// executeStep does a step with its predecessors ended, or as much of it as can be done now.
func (r *Run) executeStep(id dag.ID) {
	s := &r.steps[id]
	if r.begun != nil && r.flags[id]&reached == 0 {
		r.begun[id] = r.comm.e.world.config.traceTime()
	}
	switch s.Kind {
	case submodules.SendStep:
		r.sendStep(id, s)
	case submodules.RecvStep:
		r.recvStep(id, s)
	case submodules.CopyStep:
		r.comm.counters.Copied += s.Len()
		if s.Dst.Region == tasks.Slot {
			r.doInChunks(id, s, r.comm.e.hand)
		} else {
			r.doInChunks(id, s, copyBytes)
		}
	case submodules.ReduceStep:
		r.reduceStep(id, s)
	case submodules.ShareStep:
		r.shareStep(id, s)
	case submodules.NotifyStep:
		r.notifyStep(id, s)
	case submodules.AwaitStep:
		r.flags[id] |= reached
		if r.flags[id]&arrived != 0 {
			r.endStep(id)
		}
	case submodules.JoinStep:
		r.endStep(id)
	default:
		r.failStep(s, fmt.Errorf("unknown kind of step %v", s.Kind))
	}
}

// beginPass loads the next program and makes its first steps ready.
func (r *Run) beginPass() {
	for {
		switch n := int64(r.pass); {
		case n < r.b.Passes:
			r.prog = r.b.Whole
		case n == r.b.Passes && r.b.Rest != nil:
			r.prog = r.b.Rest
		case r.seal != nil && n <= int64(r.sealPass()):
			if !r.maySeal() {
				return
			}
			r.pass, r.prog = r.sealPass(), r.seal
		default:
			if !r.comm.failIfDisagreed(r) {
				r.finishCall(nil)
			}
			return
		}
		if r.prog.Len() > 0 {
			break
		}
		r.pass++
	}
	r.loadPass(&r.bound, r.prog, int64(r.pass)*r.b.Stride)
	r.stepsLeft = len(r.steps)
	clear(r.flags[:r.stepsLeft])
	copy(r.pending, r.prog.InDegree())
	r.ready, r.freshSends, r.waiting = r.ready[:0], 0, r.waiting[:0]
	order := r.prog.Order()
	for i := len(order) - 1; i >= 0; i-- {
		if id := order[i]; r.pending[id] == 0 {
			r.ready = append(r.ready, id)
		}
	}
	r.comm.deliverEarly(r)
}

// deliverEarly hands the run's pass its early messages.
func (c *Comm) deliverEarly(r *Run) {
	kept := c.earlyMessages[:0]
	for _, m := range c.earlyMessages {
		if m.Seq == r.seq {
			r.present.set(c.local[m.from])
		}
		switch {
		case m.Seq != r.seq:
			kept = append(kept, m)
		case m.Digest != r.digest:
			c.noteMismatch(m.from, m.Seq, m.Digest)
			kept = append(kept, m) // for dropEarly
		case m.Kind == wire.Probe:
		case m.Pass != r.pass:
			kept = append(kept, m)
		default:
			r.deliverToStep(m.from, &m.Message, c.e.store.get(m.block), m.block)
		}
	}
	clear(c.earlyMessages[len(kept):])
	c.earlyMessages = kept
}

// failIfDisagreed looks for an early message for the run from a rank calling something else, and
// notes a mismatch. It reports whether there was one. In a run with steps the digests are compared
// at delivery; this is for a run that ends without any.
func (c *Comm) failIfDisagreed(r *Run) bool {
	i := slices.IndexFunc(c.earlyMessages, func(m earlyMessage) bool {
		return m.Seq == r.seq && m.Digest != r.digest
	})
	if i < 0 {
		return false
	}
	c.noteMismatch(c.earlyMessages[i].from, r.seq, c.earlyMessages[i].Digest)
	c.e.dropMessage(&c.earlyMessages[i])
	c.earlyMessages = slices.Delete(c.earlyMessages, i, i+1)
	return true
}
