package executor

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/submodules"
)

// Seal lets all runs that are bound from now on end alike on all ranks that go on: well on all of them, or on none.
// barrier is this rank's part of a barrier on the communicator. Each call ends with it, behind the data. All
// ranks seal the communicator, before the first call on it.
//
// Who is past the barrier knows that the data of all ranks is complete. When the communicator breaks, the ranks that
// go on agree how many calls have their data on all of them, see [Comm.Shrink]: these end well. So the end of a
// call that breaks takes as long as that, also when its context is done.
func (c *Comm) Seal(barrier *submodules.Program) error {
	e := c.e
	e.enter()
	defer e.mu.Unlock()
	if c.seq > 0 {
		return fmt.Errorf("seal communicator %v: it has had %d calls", c.id, c.seq)
	}
	if barrier.Size != c.Size() || barrier.Rank != c.me {
		return fmt.Errorf("seal communicator %v: a barrier of rank %d of %d on rank %d of %d", c.id, barrier.Rank, barrier.Size, c.me, c.Size())
	}
	c.seal = barrier
	return nil
}

// sealPass is the number of the pass in which a sealed call waits for the others. It is beyond those of data.
func (r *Run) sealPass() uint32 { return uint32(r.b.Passes) + 1 }

// maySeal notes that the data of a call is complete here, if it is the next one, and reports whether the barrier behind it
// may begin. Calls of a communicator are sealed in their order: so a rank that is through the barrier of one
// knows that all ranks have those before, too.
func (r *Run) maySeal() bool {
	c := r.comm
	if r.seq != c.complete {
		r.pass, r.parked = r.sealPass()-1, true
		return false
	}
	c.complete++
	if next := c.findRun(c.complete); next != nil {
		next.parked = false // if it was: it goes on
	}
	return true
}

// programs lists what the run may walk through.
func (r *Run) programs() []*submodules.Program {
	all := []*submodules.Program{r.b.Whole, r.b.Rest, r.seal}
	return slices.DeleteFunc(all, func(p *submodules.Program) bool { return p == nil })
}
