package executor

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
)

// ErrOperation is why a collective fails whose operation, one of [tasks.UserOp], makes a
// call on a communicator: it would wait for itself.
var ErrOperation = errors.New("an operation must not use a communicator")

// errExited is how a step fails whose operation ended the goroutine.
var errExited = errors.New("the operation ended its goroutine, as runtime.Goexit and FailNow of a test do")

// reduce combines. A caller's operation that panics, ends its goroutine or calls the
// communicator fails the step, not the process.
func (r *Run) reduce(id dag.ID, s *submodules.Step) {
	r.comm.counters.Reduced += s.Len()
	if !r.b.User {
		r.chunks(id, s, r.b.Kernel)
		return
	}
	r.reduceByUser(id, s)
}

func (r *Run) reduceByUser(id dag.ID, s *submodules.Step) {
	returned := false
	defer func() {
		switch p := recover(); {
		case p == ErrOperation, p == errExited:
			r.fail(s, p.(error))
		case p != nil:
			r.fail(s, fmt.Errorf("the operation panicked: %v", p))
		case !returned:
			r.comm.e.world.exited.Store(goroutine(), true)
			r.fail(s, errExited)
		}
	}()
	do := r.user[0]
	if r.comm.e.driver.n != &r.ending {
		do = r.user[1]
	}
	r.chunks(id, s, do)
	returned = true
}

// combineApart is combine on a goroutine of its own: this one waits for something else
// than the run, and an operation may end the goroutine that it runs on.
func (r *Run) combineApart(dst, a, b []byte) {
	returned, over := false, make(chan any)
	go func() { // waited for below
		var problem any = errExited
		defer func() {
			if p := recover(); p != nil {
				problem = p
			} else if returned {
				problem = nil
			}
			over <- problem
		}()
		r.combine(dst, a, b)
		returned = true
	}()
	if problem := <-over; problem != nil {
		panic(problem)
	}
}

// combine calls a caller's operation, with the engine's lock held.
//
//go:noinline
func (r *Run) combine(dst, a, b []byte) {
	w := r.comm.e.world
	w.combining.Add(1)
	defer w.combining.Add(-1)
	r.b.Kernel(dst, a, b)
}

// combineName is what insideOperation looks for.
var combineName = runtime.FuncForPC(reflect.ValueOf((*Run).combine).Pointer()).Name()

// insideOperation tells whether this goroutine is in a function that combine called, on
// whatever rank.
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

// goroutine is the number of this one, as text.
func goroutine() string {
	var head [64]byte
	n := runtime.Stack(head[:], false) // goroutine 17 [running]: …
	number, _, _ := bytes.Cut(bytes.TrimPrefix(head[:n], []byte("goroutine ")), []byte(" "))
	return string(number)
}

// enter takes the engine's lock for a call of the program's. In an operation it panics.
func (e *Endpoint) enter() {
	e.world.RefuseOperations()
	e.mu.Lock()
}

// RefuseOperations panics with [ErrOperation] if an operation calls, which runs with the
// lock of an engine held: that ends the operation and fails its step.
func (w *World) RefuseOperations() {
	if w.combining.Load() == 0 || !insideOperation() {
		return
	}
	// The functions that an ended goroutine has deferred run on top of its stack.
	if _, exited := w.exited.Load(goroutine()); !exited {
		panic(ErrOperation)
	}
}

// crash ends the process when a driver panics, which is a defect of this package or
// of a hook. The lock may be held and nobody could drive from then on: if the panic
// were recovered further up, everything would wait for ever and say nothing.
func crash() {
	if p := recover(); p != nil {
		fatal(p)
	}
}

func fatal(p any) {
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("executor: a driver panicked: %v\n%s", p, stack)) }()
	select {}
}

// steering is deferred by who drives: returned is set before the function returns. When
// an operation has ended the goroutine instead, it lets go of the wheel, which another
// one takes. It reports whether that was so; the lock is held.
func (e *Endpoint) steering(returned *bool) (ended bool) {
	if *returned {
		return false
	}
	e.driving, e.backDrives = false, false
	if len(e.failing) == 0 { // not an operation: a hook
		for _, c := range e.comms {
			if c.local != nil {
				c.blame(e.rank, errors.New("a hook ended the goroutine that drove the rank, as runtime.Goexit does"))
			}
		}
	}
	return true
}
