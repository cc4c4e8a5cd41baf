package executor

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
)

// RefuseOperations panics with [ErrOperation] if an operation calls, which runs with the
// lock of an engine held: that ends the operation and fails its step.
func (w *World) RefuseOperations() {
	if w.combining.Load() > 0 && insideOperation() {
		panic(ErrOperation)
	}
}

// enter takes the engine's lock for a call of the program's. In an operation it panics.
func (e *Endpoint) enter() {
	e.world.RefuseOperations()
	e.mu.Lock()
}

// combineName is what insideOperation looks for.
var combineName = runtime.FuncForPC(reflect.ValueOf((*Run).combine).Pointer()).Name()

// combine calls a caller's operation, with the engine's lock held.
//
//go:noinline
func (r *Run) combine(dst, a, b []byte) {
	w := r.comm.e.world
	w.combining.Add(1)
	defer w.combining.Add(-1)
	r.b.Kernel(dst, a, b)
}

// insideOperation reports whether this goroutine is in a function that combine called,
// on whatever rank.
func insideOperation() bool {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function == combineName {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}

// crash ends the process when a driver panics, which is a defect of this package or
// of a hook. The lock may be held and nobody could drive from then on: if the panic
// were recovered further up, everything would wait for ever and say nothing.
func crash() {
	if p := recover(); p != nil {
		endProcess(p)
	}
}

// endProcess ends the process with what a driver panicked with, and the stack. It does
// not return.
func endProcess(p any) {
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("executor: a driver panicked: %v\n%s", p, stack)) }()
	select {}
}

// dropWheelIfExited is for who drives to defer; returned is set before the driver
// returns. When a hook has ended the goroutine instead, it lets go of the wheel, which
// another one takes. It reports whether that was so; the lock is held.
func (e *Endpoint) dropWheelIfExited(returned *bool) (ended bool) {
	if *returned {
		return false
	}
	e.driving, e.backDrives = false, false
	for _, c := range e.comms {
		if c.local != nil {
			c.blameRank(e.rank, errors.New("a hook ended the goroutine that drove the rank, as runtime.Goexit does"))
		}
	}
	return true
}
