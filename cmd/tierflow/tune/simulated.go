package tune

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
)

// addSimulateFlag adds --simulate.
func (u *tuning) addSimulateFlag(c *cobra.Command) {
	c.Flags().StringVar(&u.file, "simulate", "", kit.SimulateText)
}

// runAnywhere calls f for each rank of the job, or once if a machine is simulated.
func (u *tuning) runAnywhere(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *tuneRank) error) error {
	if u.file != "" {
		return u.runSimulated(ctx, stdout, stderr, f)
	}
	return u.runOnJob(ctx, stdout, stderr, f)
}

// simulatedTime returns how long the measurements so far would have taken on the simulated
// machine; 0 if there are ranks.
func (r *tuneRank) simulatedTime() time.Duration {
	if s, ok := r.meter.(interface{ Spent() time.Duration }); ok {
		return s.Spent()
	}
	return 0
}

// seconds returns what has been spent since begin: on the simulated machine, where that had
// spent so much, or here.
func (r *tuneRank) seconds(begin time.Time, simulated time.Duration) float64 {
	if r.simulated != "" {
		return (r.simulatedTime() - simulated).Seconds()
	}
	return time.Since(begin).Seconds()
}
