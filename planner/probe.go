package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/pairs"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// probeTag is the tag of all messages of a measurement: nobody else sends any meanwhile.
const probeTag = 0

// pairLine is the line of this rank with another one.
type pairLine struct {
	comm *executor.Comm
	peer levels.Rank
}

var _ pairs.Line = pairLine{}

func (l pairLine) Send(ctx context.Context, b []byte) error {
	t, err := l.comm.Send(ctx, l.peer, probeTag, tasks.Uint8, b)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

func (l pairLine) Recv(ctx context.Context, b []byte) error {
	t, err := l.comm.Recv(ctx, l.peer, probeTag, tasks.Uint8, b)
	if err == nil {
		err = t.Wait(ctx)
	}
	if err == nil && t.Len() != len(b) {
		err = fmt.Errorf("rank %d sends %d bytes, want %d", l.peer, t.Len(), len(b))
	}
	return err
}

// inPairs has pairs of ranks measure at the same time. The leader of pair number at calls lead,
// and lead must let the other rank go. Each rank is in one pair at most.
func (b *base) inPairs(ctx context.Context, all [][2]int, lead func(at int, l *pairs.Leader) error) error {
	for at, pair := range all {
		switch int(b.comm.Rank()) {
		case pair[0]:
			return lead(at, pairs.NewLeader(pairLine{b.comm, levels.Rank(pair[1])}))
		case pair[1]:
			return pairs.Follow(ctx, pairLine{b.comm, levels.Rank(pair[0])}, pairs.ProbeLimit)
		}
	}
	return nil
}
