package simulate

import (
	"context"
	"errors"
	"io"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/tasks"
)

// mostWhole is how many steps are simulated on all nodes though one could stand for all: those
// of about a minute. Tests make it fewer.
var mostWhole int64 = 50_000_000

// compilation returns the compilation of the request with a plan, until ctx ends.
func (s *simulation) compilation(ctx context.Context, plan tasks.Plan) *sim.Compilation {
	return &sim.Compilation{Request: s.request, Topology: s.on, Plan: plan, Registry: s.reg, Check: ctx.Err}
}

// makeJob compiles the job of all ranks, or if it is too large one of a node that stands for all.
// The bar shows that something goes on.
func (s *simulation) makeJob(c *sim.Compilation, stderr io.Writer) (*sim.Job, *kit.Progress, error) {
	need, err := c.Need()
	if err != nil {
		return nil, nil, kit.UsageError(err)
	}
	what := kit.SimulationText(c, need)
	bar := kit.NewProgress(stderr, "simulating", kit.NeedText(what, need.Bytes))
	check := c.Check
	c.Check = func() error {
		bar.Show(0, 0)
		return check()
	}
	isWide := need.Steps > mostWhole || !kit.FitsMemory(need.Bytes)
	if isWide && s.path == 0 && s.trace == "" && sim.CheckAlike(s.machine, s.seed) == nil {
		job, err := c.SymmetricJob()
		if !errors.Is(err, sim.ErrAsymmetric) {
			s.isLarge = true
			return job, bar, kit.UsageError(err)
		}
	}
	if s.isLarge, err = s.checkNeed(what, need); err != nil {
		return nil, nil, err
	}
	job, err := c.Job()
	return job, bar, kit.UsageError(err)
}

// checkNeed complains of a simulation too large for the memory. isLarge: it fits only without the
// critical path.
func (s *simulation) checkNeed(what string, n sim.Need) (isLarge bool, err error) {
	if err := kit.CheckMemory(what, n.Bytes, kit.Less); err != nil {
		return false, err
	}
	if s.path > 0 || s.trace != "" {
		return false, kit.CheckMemory(what+", with its critical path,", n.Bytes+n.Path, "leave out --path and --trace, or "+kit.Less)
	}
	return !kit.FitsMemory(n.Bytes + n.Path), nil
}
