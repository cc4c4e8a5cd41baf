package planner

import (
	"sync/atomic"

	"github.com/tierflow/tierflow/executor"
)

// around is what a collective does before and after a run: copying the caller's blocks where
// they don't lie in one array. The zero value does nothing.
type around struct {
	before, after func()      // both or none
	open          atomic.Bool // before has run, and after not yet
}

// begin runs before. While a run is open its copies are in use: beginning another one is an
// error.
func (a *around) begin() error {
	if a.before == nil {
		return nil
	}
	if !a.open.CompareAndSwap(false, true) {
		return executor.ErrBusy
	}
	a.before()
	return nil
}

// end runs after, unless the run failed.
func (a *around) end(err error) {
	if a.before == nil || !a.open.Load() {
		return
	}
	if err == nil {
		a.after()
	}
	a.open.Store(false)
}
