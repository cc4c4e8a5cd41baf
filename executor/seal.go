package executor

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/submodules"
)

// Seal lets all runs bound from now on end alike on all ranks that go on: well on all of them, or
// on none. barrier is this rank's part of a barrier on the communicator. Each call ends with it,
// behind the data. All ranks seal the communicator, before the first call on it.
//
// A rank past the barrier knows: the data of all ranks is complete. When the communicator breaks,
// the ranks that go on agree how many calls have their data on all of them, see [Comm.Shrink]:
// these end well. So the end of a broken call takes as long as the agreement, also when its context
// is done.
func (c *Comm) Seal(barrier *submodules.Program) error {
	e := c.e
	e.mu.Lock()
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

// sealPass returns the number of a sealed call's last pass, its barrier. It is beyond those of
// data.
func (d *bound) sealPass() uint32 { return uint32(d.b.Passes) + 1 }

// maySeal notes that the data of a call is complete here, if it is the next one, and reports
// whether the barrier behind it may begin. Calls of a communicator are sealed in their order: so a
// rank through the barrier of one knows that all ranks have those before, too.
func (r *Run) maySeal() bool {
	c := r.comm
	if r.seq != c.completeCalls {
		r.pass, r.parked = r.sealPass()-1, true
		return false
	}
	c.completeCalls++
	if next := c.findRun(c.completeCalls); next != nil {
		next.parked = false // if it was: it goes on
	}
	return true
}

// programs lists the programs of the binding.
func (d *bound) programs() []*submodules.Program {
	all := []*submodules.Program{d.b.Whole, d.b.Rest, d.seal}
	return slices.DeleteFunc(all, func(p *submodules.Program) bool { return p == nil })
}
