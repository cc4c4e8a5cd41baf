package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
)

// reduceStep combines. A caller's operation that panics, ends its goroutine or calls the
// communicator fails the step, not the process.
func (r *Run) reduceStep(id dag.ID, s *submodules.Step) {
	r.comm.counters.Reduced += s.Len()
	if !r.b.User {
		r.doInChunks(id, s, r.b.Kernel)
		return
	}
	r.reduceByUser(id, s)
}

// reduceByUser combines with a caller's operation.
func (r *Run) reduceByUser(id dag.ID, s *submodules.Step) {
	defer func() {
		switch p := recover(); {
		case p == ErrOperation, p == errExited:
			r.failStep(s, p.(error))
		case p != nil:
			r.failStep(s, fmt.Errorf("the operation panicked: %v", p))
		}
	}()
	r.doInChunks(id, s, r.user)
}

// combineApart calls combine on the goroutine of the rank's operator, and repeats the operation's
// panic. An operation may end its goroutine. Here this would be the program's own: its call would
// never return, not even with an error.
func (r *Run) combineApart(dst, a, b []byte) {
	e := r.comm.e
	if e.operator == nil {
		e.operator = startOperator(&e.background)
	}
	e.operator.pieces <- piece{e.world, r.b.Kernel, dst, a, b}
	problem := <-e.operator.problems
	if problem == errExited {
		e.operator = nil
	}
	if problem != nil {
		panic(problem)
	}
}
