package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// isUnchanged has two pairs of ranks of different nodes send some messages, and reports on all
// ranks whether these took about as long as the machine's description says. All ranks call it, on a
// communicator without other calls.
func (b *base) isUnchanged(ctx context.Context, m *choose.Machine) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, surveyDeadline, fmt.Errorf("it takes longer than %v", surveyDeadline))
	defer cancel()
	k := b.topology.Depth() - 1
	some := pairs.At(b.topology, k)
	some = some[:min(len(some), 2)]
	changed := []int64{0}
	err := b.inPairs(ctx, some, func(_ int, l *pairs.Leader) error {
		link, err := m.Link(b.topology.Level(k))
		if err != nil { // the machine has none
			changed[0] = 1
			return l.End(ctx)
		}
		is, err := l.IsChanged(ctx, link)
		if is {
			changed[0] = 1
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("check the machine: %w", err)
	}
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	err = b.alongTree(ctx, r, asBytes(changed))
	return changed[0] == 0, err
}
