package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// raceTurns is how often each plan of a race is measured, a part of the time each:
// what disturbs the machine disturbs all.
const raceTurns = 2

// races lists the plans to measure in turns: for each request the one that looks
// best, those nearly as good, and the built-in rule's. The fastest of them is taken.
// If something else is still thought to be faster than it, it is measured beside
// that, until the request has had its number of racers.
func (p *probes) races() (all []work) {
	for i, r := range p.requests {
		rivals := p.rivalsOf(i)
		if len(rivals) > 1 {
			all = append(all, work{request: r, plan: rivals[0], rivals: rivals[1:], run: p.race, kind: Races})
		}
	}
	return all
}

// rivalsOf are the plans that request i has yet to see beside each other.
func (p *probes) rivalsOf(i int) (rivals []tasks.Plan) {
	all := estimates(p.knowledge, p, i)
	var fastest *table.Candidate
	raced := 0
	for k := range all {
		if p.raced(i, all[k].Parsed) {
			raced++
			if fastest == nil {
				fastest = &all[k]
			}
		}
	}
	if raced > 0 {
		most := p.racers
		if p.rough[i] {
			most += 2 // what won was chosen by a line
		}
		if raced < most && all[0].Parsed.String() != fastest.Plan {
			return []tasks.Plan{fastest.Parsed, all[0].Parsed}
		}
		return nil
	}
	usual := p.rules[i]
	for _, c := range all {
		if c.NS <= p.near*all[0].NS && len(rivals) < max(p.racers-1, 1) {
			rivals = append(rivals, c.Parsed)
		}
	}
	if _, err := rule.Fits(p.requests[i], p.topology, usual, p.space.Registry); err == nil && !slices.ContainsFunc(rivals, usual.Equal) {
		rivals = append(rivals, usual)
	}
	return rivals
}

// race measures plans in turns.
func (p *knowledge) race(ctx context.Context, m Meter, w *work) error {
	plans := append([]tasks.Plan{w.plan}, w.rivals...)
	series := make([][]float64, len(plans))
	stop := turn(p.stop)
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
			series[k] = append(series[k], timing.Series...)
		}
	}
	for k, q := range plans {
		if len(series[k]) > 0 {
			p.note(w.request, q, series[k], raceTurns)
		}
	}
	return nil
}

// turn is a turn's part of what stops a measurement.
func turn(s stats.Stop) stats.Stop {
	s = s.WithDefaults()
	s.Least, s.Most, s.Budget = (s.Least+raceTurns-1)/raceTurns, (s.Most+raceTurns-1)/raceTurns, s.Budget/raceTurns
	return s
}
