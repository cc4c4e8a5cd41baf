package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Timing is how long repetitions took, in nanoseconds.
type Timing struct {
	Slowest costs.Summary // of the slowest rank in each repetition
	Ranks   []float64     // median of each rank
	Series  []float64     // the slowest rank's time, by repetition
	Spent   float64       // of the whole measurement, by the clock of rank 0
}

// Collective times calls of a request with a complete plan, on buffers of its own. A repetition is
// one call. Back to back it is several, and its time is that of one.
func (b *Bench) Collective(ctx context.Context, r tasks.Request, p tasks.Plan, stop stats.Stop) (t Timing, err error) {
	begin := time.Now()
	calls, err := b.newCalls(r, p)
	if err != nil {
		return t, fmt.Errorf("measure: %w", err)
	}
	if b.Regime == costs.BackToBack {
		if err := calls.followCalls(ctx); err != nil {
			return t, fmt.Errorf("measure %v: %w", r, err)
		}
	}
	all, err := b.repeatInTurns(ctx, stop, calls.sample)
	if err != nil {
		return t, fmt.Errorf("measure %v: %w", r, err)
	}
	if b.Rank() == 0 {
		t = timing(all[0], b.comm.Size())
		t.Spent = float64(time.Since(begin))
	}
	return t, b.shareJSON(ctx, &t)
}

func timing(s samples, ranks int) Timing {
	t := Timing{Series: s.totals(), Ranks: make([]float64, ranks)}
	t.Slowest = stats.Summarize(t.Series)
	for r := range t.Ranks {
		t.Ranks[r] = costs.Median(s.column(levels.Rank(r), 0))
	}
	return t
}

// total is the subject of the rank's time alone.
func (x *bound) total(ctx context.Context) ([]float64, error) {
	d, err := x.runOnce(ctx)
	return []float64{float64(d)}, err
}
