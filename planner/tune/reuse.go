package tune

import "fmt"

// Reuse says how far measured tasks serve more than one plan's time.
type Reuse struct {
	Tasks       int `json:"tasks"`       // different ones, each with some sizes of segments
	Measured    int `json:"measured"`    // all sizes of these
	Sizes       int `json:"sizes"`       // tasks in several sizes of message
	Collectives int `json:"collectives"` // tasks in several collectives
}

// String says it in words.
func (r Reuse) String() string {
	part := func(n int) int { return (100*n + r.Tasks/2) / max(r.Tasks, 1) }
	return fmt.Sprintf("%d, measured with %.1f sizes of segment each; %d%% serve several sizes of message, %d%% several collectives",
		r.Tasks, float64(r.Measured)/float64(max(r.Tasks, 1)), part(r.Sizes), part(r.Collectives))
}

// Reuse counts the tasks in the table for the search. Methods that measure no
// tasks by themselves reuse none.
func (s *Search) Reuse() (all Reuse) {
	p, ok := s.strategy.(*predictor)
	if !ok {
		return all
	}
	for _, u := range p.units {
		if n := len(u.curve.Sizes()); n > 0 {
			all.Tasks++
			all.Measured += n
			all.Sizes += b2i(len(u.messages) > 1)
			all.Collectives += b2i(len(u.colls) > 1)
		}
	}
	return all
}
