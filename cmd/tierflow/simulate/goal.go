package simulate

import (
	"io"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs/goal"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// writeGoal writes the programs of all ranks in GOAL.
func (s *simulation) writeGoal(plan tasks.Plan, stdout io.Writer) error {
	all := make([]submodules.Compiled, s.on.Size())
	for rank := range all {
		var err error
		if all[rank], err = submodules.CompileRequest(s.request, s.on, plan, levels.Rank(rank), s.reg); err != nil {
			return kit.UsageError(err)
		}
	}
	schedule, err := goal.FromPrograms(all, s.machine)
	if err != nil {
		return kit.Usagef("--goal: %w", err)
	}
	return kit.WriteOutput(stdout, s.goal, schedule.Format())
}
