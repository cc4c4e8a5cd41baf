package kit

import (
	"context"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
)

// Job is a source of ranks: goroutines of this process, or the processes of a launched job with
// this one among them.
type Job interface {
	// Topology returns the places of all ranks.
	Topology() *levels.Topology
	// Local makes a communicator with forced plans, in the grammar of planner.Options.Plan, and
	// returns the ends of this process's ranks.
	Local(plan string) ([]*planner.Comm, error)
	// Links describes the links: measurements over others can't be compared.
	Links() string
	// String describes ranks and links for people.
	String() string
}

// RunRanks makes one communicator for each plan and calls f once for each rank of this
// process. f gets that rank's ends in the order of plans. RunRanks closes them and
// returns the first error.
func RunRanks(ctx context.Context, j Job, plans []string, f func(ctx context.Context, comms []*planner.Comm) error) error {
	return RunRanksOf(ctx, []Job{j}, plans, f)
}

// RunRanksOf is RunRanks with several jobs of the same ranks, each with all plans: f gets the
// ends of the first job before those of the next.
func RunRanksOf(ctx context.Context, jobs []Job, plans []string, f func(ctx context.Context, comms []*planner.Comm) error) error {
	ends := map[int][]*planner.Comm{} // by rank
	var first []*planner.Comm
	for _, j := range jobs {
		for _, plan := range plans {
			local, err := j.Local(plan)
			if err != nil {
				closeAll(ends)
				return err
			}
			if first == nil {
				first = local
			}
			for _, c := range local {
				ends[c.Rank()] = append(ends[c.Rank()], c)
			}
		}
	}
	defer closeAll(ends)
	return planner.Each(ctx, first, func(ctx context.Context, c *planner.Comm) error {
		// A failed rank leaves all communicators, so nobody waits for it in any of them.
		defer closeEnds(ends[c.Rank()][1:])
		return f(ctx, ends[c.Rank()])
	})
}

func closeAll(ends map[int][]*planner.Comm) {
	for _, comms := range ends {
		closeEnds(comms)
	}
}

// closeEnds closes comms and drops the errors: a failed communicator only repeats its failure.
func closeEnds(comms []*planner.Comm) {
	for _, c := range comms {
		_ = c.Close()
	}
}
