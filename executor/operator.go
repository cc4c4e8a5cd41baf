package executor

import (
	"errors"
	"sync"
)

// operator runs a rank's operations of callers, on a goroutine of its own. It takes a piece
// at a time from who holds the engine's lock.
type operator struct {
	pieces   chan piece // closed by World.Close
	problems chan any   // what came of each piece: what the operation panicked with, or errExited, or nil
}

// piece is the operands of an operation.
type piece struct {
	run       *Run
	dst, a, b []byte
}

// startOperator starts one, which running counts.
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
	p.run.combine(p.dst, p.a, p.b)
	problem = nil
	return true
}

// errExited is how a step fails whose operation ended the goroutine.
var errExited = errors.New("the operation ended its goroutine, as runtime.Goexit and FailNow of a test do")
