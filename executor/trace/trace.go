// Package trace lets programs watch a run: the hooks an executor calls, the events it
// calls them with, and a recorder that keeps these.
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

// Source tells what the steps of an event are; a compiled program is one. It must
// be safe for concurrent use.
type Source interface {
	// Describe says of a step which task it belongs to (ib#3), its own label
	// (ib#3 send r0>r4 64KiB), its primitive (send), the symbol of its level
	// ('i') and how many bytes it works on. step is one that an event named.
	Describe(step int32) (task, label, kind string, level byte, bytes int64)
}

// WholeRun is the step of an event that stands for a whole run of a rank. It is
// not for [Source.Describe].
const WholeRun int32 = -1

// Event is one step, or one whole run, that has ended. Waiting counts: a recv
// begins when it could have received, not when its first byte came.
type Event struct {
	Source     Source
	Rank       levels.Rank
	Run, Pass  uint32 // of the program, both from 0
	Step       int32
	Begin, End int64 // nanoseconds since [Hooks.Epoch], monotonic
}

// Hooks are functions that an executor calls while it runs a program; nil ones
// are not called. They are called by the goroutine that drives the rank, between
// two steps, and for several ranks at the same time: they must be short, safe
// for concurrent use, and must not call back.
type Hooks struct {
	Epoch time.Time   // what times count from, with a monotonic reading as [time.Now] has it
	Step  func(Event) // at the end of each step
	Run   func(Event) // at the end of each run of a rank, after all its steps; Step is WholeRun
}
