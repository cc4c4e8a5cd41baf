// Package trace lets programs watch a run: the hooks called by an executor, their
// events, and a recorder of these.
//
// It never runs, orders or prints anything. Of programs it knows only the methods of
// [Source].
//
//	rec := trace.NewRecorder()
//	hooks := rec.Hooks() // given to the executor of each rank
//	…                    // run
//	for _, e := range rec.Events() {
//		_, label, _, _, _ := e.Source.Describe(e.Step)
//		fmt.Println(e.Rank, label, e.End-e.Begin, "ns")
//	}
package trace

import (
	"time"

	"github.com/tierflow/tierflow/levels"
)

// Source describes the steps of events; a compiled program is one. It must
// be safe for concurrent use.
type Source interface {
	// Describe returns the task of a step (ib#3), its own label
	// (ib#3 send r0>r4 64KiB), its primitive (send), the symbol of its level
	// ('i') and the number of its bytes. step is from an event.
	Describe(step int32) (task, label, kind string, level byte, bytes int64)
}

// WholeRun is the step of an event for a whole run of a rank. It is
// not for [Source.Describe].
const WholeRun int32 = -1

// Event is one ended step, or one ended run. Waiting counts: a recv
// begins when it could have received, not when its first byte came.
type Event struct {
	Source     Source
	Rank       levels.Rank
	Run, Pass  uint32 // of the program, both from 0
	Step       int32
	Begin, End int64 // nanoseconds since [Hooks.Epoch], monotonic
}

// Hooks are functions for an executor to call while it runs a program; nil ones
// are not called. The goroutine that drives the rank calls them, between
// two steps, and for several ranks at the same time: they must be short, safe
// for concurrent use, and must not call back.
type Hooks struct {
	Epoch time.Time   // the zero of times, with a monotonic reading as from [time.Now]
	Step  func(Event) // at the end of each step
	Run   func(Event) // at the end of each run of a rank, after all its steps; Step is WholeRun
}
