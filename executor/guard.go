package executor

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"

	"github.com/tierflow/tierflow/executor/kernel"
)

// RefuseOperations panics with [ErrOperation] if an operation is the caller. Operations run with
// the lock of an engine held. The panic ends the operation and fails its step.
func (w *World) RefuseOperations() {
	if w.combining.Load() > 0 && insideOperation() {
		panic(ErrOperation)
	}
}

// combineName is the function name insideOperation looks for.
var combineName = runtime.FuncForPC(reflect.ValueOf((*World).combine).Pointer()).Name()

// combine calls a caller's operation, with an engine's lock held.
//
//go:noinline
func (w *World) combine(do kernel.Func, dst, a, b []byte) {
	w.combining.Add(1)
	defer w.combining.Add(-1)
	do(dst, a, b)
}

// insideOperation reports whether this goroutine is inside of combine, on any rank.
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

// crash ends the process when a driver panics, a defect of this package or of a hook. The lock may
// be held and nobody could drive from then on: if the panic were recovered further up, everything
// would wait for ever and say nothing.
func crash() {
	if p := recover(); p != nil {
		endProcess(p)
	}
}

// endProcess ends the process with a driver's panic and the stack. It does not return.
func endProcess(p any) {
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("executor: a driver panicked: %v\n%s", p, stack)) }()
	select {}
}
