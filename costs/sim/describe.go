package sim

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// label returns the label of a rank's step: ib#3 send r0>r4 64KiB.
func (j *Job) label(s *seat, rank, id int32) string {
	step := &s.form.steps[id]
	peer := levels.Rank(-1)
	if step.peer >= 0 {
		peer = levels.Rank(s.ranks[step.peer])
	}
	return submodules.StepLabel(s.form.tasks[step.task].String(), step.kind, levels.Rank(rank), peer, step.bytes)
}

// Source describes the steps of one program of one rank. It is a source of package
// trace.
type Source struct {
	job  *Job
	seat *seat
	rank int32
}

// Source returns the source of a rank's steps in a pass.
func (j *Job) Source(rank levels.Rank, pass int64) Source {
	return Source{j, j.seat(int32(rank), pass), int32(rank)}
}

// Describe describes a step, as a compiled program does.
func (s Source) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	at := &s.seat.form.steps[step]
	name := s.seat.form.tasks[at.task]
	return name.String(), s.job.label(s.seat, s.rank, step), at.kind.String(), name.kind.Symbol, at.bytes
}
