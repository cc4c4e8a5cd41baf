package planner

import (
	"sync/atomic"

	"github.com/tierflow/tierflow/executor"
)

// around is a collective's work before and after a run: copying the caller's blocks if they don't
// lie in one array, or keeping an input for a failed call. The zero value does nothing.
type around struct {
	before func()
	after  func(err error) // the run's; nil if before is
	open   atomic.Bool     // before has run, and after not yet
}

// keepInput lets a failed run put back the input that it overwrites in a buffer.
func (a *around) keepInput(buf *[]byte) {
	var saved []byte
	a.before = func() { saved = append(saved[:0], *buf...) }
	a.after = func(err error) {
		if err != nil {
			copy(*buf, saved)
		}
	}
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

// end runs after, once.
func (a *around) end(err error) {
	if a.before == nil || !a.open.Load() {
		return
	}
	a.after(err)
	a.open.Store(false)
}
