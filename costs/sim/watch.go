package sim

import (
	"github.com/tierflow/tierflow/levels"
)

// Event is the end of a step.
type Event struct {
	Rank       levels.Rank
	Pass       int64
	Step       int32
	Task       int32 // of the step, in the rank's task graph
	Segment    int32 // of the task
	Begin, End Time  // from when it could have been done until it was
}

// watch notes when steps begin, for a watcher.
type watch struct {
	tell  func(Event)
	begun [][]Time // by rank and step of the running pass; -1: not yet
}

func newWatch(j *Job, tell func(Event)) *watch {
	return &watch{tell: tell, begun: make([][]Time, j.simulatedRanks())}
}

// loadForm forgets the pass before.
func (w *watch) loadForm(r *rank) {
	w.begun[r.id] = sized(w.begun[r.id], r.form.len())
	for i := range w.begun[r.id] {
		w.begun[r.id][i] = -1
	}
}

// noteBegin notes that a step is executed, for the first time if it was not noted yet.
func (w *watch) noteBegin(r *rank, id int32) {
	if at := &w.begun[r.id][id]; *at < 0 {
		*at = r.clock
	}
}

// tellEnd tells the watcher of a step.
func (w *watch) tellEnd(r *rank, id int32) {
	task := r.form.steps[id].task
	w.tell(Event{levels.Rank(r.id), r.pass, id, task, r.form.tasks[task].segment, w.begun[r.id][id], r.clock})
}
