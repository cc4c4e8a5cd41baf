package tune

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/tasks"
)

// Pruned says why the heuristics leave a plan out; empty: they don't.
func (s Space) Pruned(r tasks.Request, t *levels.Topology, p tasks.Plan) string {
	s.Heuristics = true
	one := template{plan: p}
	one.outline, one.refused = builtin.Fits(r, t, p, s.Registry)
	return s.whyRejected(r, t, p, &one)
}

// Groups lists the groups of what is measured first, in its order.
func (s *Search) Groups() (all []string) {
	_ = s.planWork(func() error { return nil })
	for _, w := range s.job {
		all = append(all, w.group)
	}
	return all
}

// Spread is spread.
func Spread(n int) []int { return spreadOver(n) }

// Around is around for pairs of bytes and ratio.
func Around(pairs [][2]float64, bytes int64) (ratio, far float64) {
	var all []fix
	for _, p := range pairs {
		all = append(all, fix{int64(p[0]), p[1]})
	}
	return meanRatioNear(all, bytes)
}
