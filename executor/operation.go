package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
)

// reduceStep combines. A caller's operation that panics, ends its goroutine or calls
// the communicator fails the step, not the process.
func (r *Run) reduceStep(id dag.ID, s *submodules.Step) {
	r.comm.counters.Reduced += s.Len()
	if !r.b.User {
		r.doInChunks(id, s, r.b.Kernel)
		return
	}
	r.reduceByUser(id, s)
}

func (r *Run) reduceByUser(id dag.ID, s *submodules.Step) {
	returned := false
	defer func() {
		switch p := recover(); {
		case p == ErrOperation, p == errExited:
			r.failStep(s, p.(error))
		case p != nil:
			r.failStep(s, fmt.Errorf("the operation panicked: %v", p))
		case !returned:
			r.comm.e.world.exited.Store(goroutine(), true)
			r.failStep(s, errExited)
		}
	}()
	do := r.user[0]
	if r.comm.e.driver.n != &r.ending {
		do = r.user[1]
	}
	r.doInChunks(id, s, do)
	returned = true
}

// combineApart calls combine on a goroutine of its own. This one waits for something
// else than the run, and an operation may end the goroutine that it runs on.
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
