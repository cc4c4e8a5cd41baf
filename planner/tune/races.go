package tune

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// raceTurns is how often each plan of a race is measured, a part of the time each:
// a disturbance meets all of them.
const raceTurns = 2

// racePlans measures plans in turns.
func (p *knowledge) racePlans(ctx context.Context, m Meter, w *work) error {
	plans := append([]tasks.Plan{w.plan}, w.rivals...)
	series := make([][]float64, len(plans))
	stop, spent := turnStop(p.stop), make([]float64, len(plans))
	for range raceTurns {
		for k, q := range plans {
			timing, err := m.Collective(ctx, w.request, q, stop)
			if errors.Is(err, submodules.ErrUnsupported) {
				p.refused[pointKey(w.request, q)] = true
				continue
			}
			if err != nil {
				return fmt.Errorf("in turns: %v: %w", q, err)
			}
			series[k], spent[k] = append(series[k], timing.Series...), spent[k]+timing.Spent
		}
	}
	for k, q := range plans {
		if len(series[k]) > 0 {
			p.noteMeasured(w.request, q, series[k], raceTurns, spent[k])
		}
	}
	return nil
}

// turnStop is a turn's part of the rule to stop a measurement.
func turnStop(s stats.Stop) stats.Stop {
	s = s.WithDefaults()
	s.Least, s.Most, s.Budget = (s.Least+raceTurns-1)/raceTurns, (s.Most+raceTurns-1)/raceTurns, s.Budget/raceTurns
	return s
}
