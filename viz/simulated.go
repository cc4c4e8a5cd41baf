package viz

import "github.com/tierflow/tierflow/costs/sim"

// SimulatedPath returns the critical path of a simulation that was asked for it.
func SimulatedPath(job *sim.Job, result *sim.Result) []PathPiece {
	all := make([]PathPiece, len(result.Path))
	for i, p := range result.Path {
		all[i] = PathPiece{
			Rank: p.Rank, Task: "flow", Label: "budget given back", Step: p.Step, Cause: p.Cause.String(),
			Begin: int64(p.Begin.Duration()), End: int64(p.End.Duration()),
		}
		if p.Step >= 0 {
			all[i].Task, all[i].Label, _, all[i].Level, _ = job.Source(p.Rank, p.Pass).Describe(p.Step)
		}
	}
	return all
}
