package executor

import (
	"errors"
	"sync"

	"github.com/tierflow/tierflow/executor/kernel"
)

// operator runs callers' operations for a rank, on a goroutine of its own. The holder of the
// engine's lock gives it a piece at a time.
type operator struct {
	pieces   chan piece // closed by World.Close
	problems chan any   // the outcome of each piece: the operation's panic, errExited, or nil
}

// piece is the operands of an operation.
type piece struct {
	world     *World
	do        kernel.Func
	dst, a, b []byte
}

// startOperator starts an operator, counted by running.
func startOperator(running *sync.WaitGroup) *operator {
	o := &operator{make(chan piece), make(chan any)}
	running.Go(func() { // World.Close waits for it
		for o.combineNext() {
		}
	})
	return o
}

// combineNext combines one piece. It reports whether there may be more.
func (o *operator) combineNext() (more bool) {
	p, more := <-o.pieces
	if !more {
		return false
	}
	var problem any = errExited
	defer func() {
		if thrown := recover(); thrown != nil {
			problem, more = thrown, true
		}
		o.problems <- problem
	}()
	p.world.combine(p.do, p.dst, p.a, p.b)
	problem = nil
	return true
}

// errExited is the failure of a step after its operation ended the goroutine.
var errExited = errors.New("the operation ended its goroutine, as runtime.Goexit and FailNow of a test do")
