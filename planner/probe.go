package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/pairs"
)

// probeTag is the tag of all messages of a measurement: nobody else sends any meanwhile.
const probeTag = 0

// pairLine is the line of this rank with another one.
type pairLine struct {
	comm *Comm
	peer int
}

var _ pairs.Line = pairLine{}

func (l pairLine) Send(ctx context.Context, b []byte) error {
	return Send(ctx, l.comm, l.peer, probeTag, b)
}

func (l pairLine) Recv(ctx context.Context, b []byte) error {
	n, err := Recv(ctx, l.comm, l.peer, probeTag, b)
	if err == nil && n != len(b) {
		err = fmt.Errorf("rank %d sends %d bytes, want %d", l.peer, n, len(b))
	}
	return err
}

// inPairs has pairs of ranks measure at the same time. A rank that leads the pair of number
// at calls lead, which must let the other one go. Each rank is in one pair at most.
func (c *Comm) inPairs(ctx context.Context, all [][2]int, lead func(at int, l *pairs.Leader) error) error {
	for at, pair := range all {
		switch c.Rank() {
		case pair[0]:
			return lead(at, pairs.NewLeader(pairLine{c, pair[1]}))
		case pair[1]:
			return pairs.Follow(ctx, pairLine{c, pair[0]}, pairs.ProbeLimit)
		}
	}
	return nil
}
