package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/goal"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// goalStep is about how many bytes of memory a step takes until it is written.
const goalStep = 450

// writeGoal writes the programs of all ranks in GOAL.
func (s *simulation) writeGoal(ctx context.Context, plan tasks.Plan, stdout, stderr io.Writer) error {
	need, err := s.compilation(ctx, plan).Need()
	if err != nil {
		return kit.UsageError(err)
	}
	what, bytes := fmt.Sprintf("writing %d steps of %d ranks", need.Steps, s.on.Size()), need.Steps*goalStep
	if err := kit.CheckMemory(what, bytes, kit.Less); err != nil {
		return err
	}
	bar := kit.NewProgress(stderr, "compiling", kit.NeedText(what, bytes))
	defer bar.Finish()
	all := make([]submodules.Compiled, s.on.Size())
	for rank := range all {
		bar.Show(int64(rank), int64(len(all)))
		if err := ctx.Err(); err != nil {
			return err
		}
		if all[rank], err = submodules.CompileRequest(s.request, s.on, plan, levels.Rank(rank), s.reg); err != nil {
			return kit.UsageError(err)
		}
	}
	schedule, err := goal.FromPrograms(all, s.machine)
	if errors.Is(err, goal.ErrUnsaid) {
		return kit.Usagef("--goal: %w; --plan s=adapt/binomial has messages inside nodes too", err)
	}
	if err != nil {
		return kit.Usagef("--goal: %w", err)
	}
	return kit.WriteOutput(stdout, s.goal, schedule.Format())
}
