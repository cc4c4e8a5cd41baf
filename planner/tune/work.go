package tune

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// work is measurements to make together.
type work struct {
	request tasks.Request
	plan    tasks.Plan
	rivals  []tasks.Plan // in turns with plan
	part    string       // the measured part of the plan; empty: all of it
	kind    string
	usual   bool                                              // the built-in rule's plan needs it: it comes first
	group   string                                            // neighbours in a list with the same group stay together; empty: it stays alone
	run     func(ctx context.Context, m Meter, w *work) error // measures, and notes the outcome; nil: beside does

	// beside measures, also beside other work if a meter can do so. The function returned notes the
	// outcome.
	beside func(ctx context.Context, m Meter, w *work) (note func(), err error)
}

// The kinds of measurements, as [Search.Doing] hears of them.
const (
	Collectives = "whole collectives"
	Races       = "races"
	Experiments = "experiments" // with one algorithm, see [Models]
	Units       = "tasks by themselves"
)

// keyOf names w among all work.
func (w *work) keyOf() string { return fmt.Sprint(pointKey(w.request, w.plan), w.rivals, w.part) }

// count is how many measurements w makes.
func (w *work) count() int { return 1 + len(w.rivals) }

func (k *knowledge) collective(ctx context.Context, m Meter, w *work) (func(), error) {
	timing, err := m.Collective(ctx, w.request, w.plan, k.stop)
	return func() { k.noteMeasured(w.request, w.plan, timing.Series, 0, timing.Spent) }, err
}
