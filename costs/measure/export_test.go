package measure

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Following is what a sample of calls back to back is made of.
type Following struct {
	Roots []levels.Rank // of the calls, in turn
	Each  int           // calls
}

// CallsOfSample is [callsOfSample].
var CallsOfSample = callsOfSample

// StepClock makes each reading of the clock of calls back to back so much later than the one before.
func (b *Bench) StepClock(step time.Duration) {
	at := time.Time{}
	b.now = func() time.Time {
		at = at.Add(step)
		return at
	}
}

// Follow returns what a sample of a collective would be made of.
func (b *Bench) Follow(ctx context.Context, r tasks.Request, p tasks.Plan) (f Following, err error) {
	c, err := b.newCalls(r, p)
	if err == nil {
		err = c.followCalls(ctx)
	}
	if err != nil {
		return f, err
	}
	for _, x := range c.turns {
		f.Roots = append(f.Roots, x.root)
	}
	f.Each = c.each
	return f, nil
}

// TaskOfAll is Task with no rank idle.
func (s *Simulated) TaskOfAll(r tasks.Request, p tasks.Plan, phases []int, segments int64) (costs.Pipeline, error) {
	return s.task(context.Background(), r, p, phases, segments, func(tasks.Request, tasks.Plan, []int) func(levels.Rank) bool { return nil })
}

// Idles returns how many ranks do nothing when phases are simulated by themselves.
func (s *Simulated) Idles(r tasks.Request, p tasks.Plan, phases []int) (n int) {
	idle := s.idleRanks(r, p, phases)
	for rank := range levels.Rank(s.topology.Size()) {
		if idle != nil && idle(rank) {
			n++
		}
	}
	return n
}
