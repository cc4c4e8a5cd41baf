package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Of a check of a machine that is kept.
const (
	checkTurns  = 6        // round trips
	checkTimes  = 2        // twice that of so many messages of probeBurst bytes
	mostChanged = 2.0      // times as long, or as short
	changeLeast = 30_000.0 // ns that never count: processes wake up
)

// isUnchanged has two pairs of ranks of different nodes send some messages, and reports on all
// ranks whether these took about as long as the machine says. All ranks of a communicator call
// it that nothing else has been started on.
func (c *Comm) isUnchanged(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, surveyDeadline, fmt.Errorf("it takes longer than %v", surveyDeadline))
	defer cancel()
	k := c.topology.Depth() - 1
	pairs := pairsAt(c.topology, k)
	pairs = pairs[:min(len(pairs), 2)]
	changed := []int64{0}
	for _, pair := range pairs {
		o := prober{c: c, word: make([]int64, 2)}
		var err error
		switch c.Rank() {
		case pair[0]:
			o.peer = pair[1]
			changed[0], err = o.compare(ctx, c.machine.Machine, c.topology.Level(k))
		case pair[1]:
			o.peer = pair[0]
			err = o.follow(ctx)
		}
		if err != nil {
			return false, fmt.Errorf("check the machine: %w", err)
		}
	}
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	err := c.alongTree(ctx, r, asBytes(changed))
	return changed[0] == 0, err
}

// compare returns 1 if messages to the peer take another time than a link says.
func (o *prober) compare(ctx context.Context, m *machine.Machine, level levels.Level) (changed int64, err error) {
	l, err := m.Link(level)
	if err != nil {
		return 1, o.say(ctx, -1, 0)
	}
	var turn, bulk float64
	for i := range checkTurns + checkTimes {
		size, count := int64(0), 0
		if i >= checkTurns {
			size, count = probeBurst, 2
		}
		all, _, err := o.ask(ctx, size, count)
		if err != nil {
			return 1, err
		}
		if ns := float64(all); i < checkTurns && (i < 2 || ns < turn) { // the first connects
			turn = ns
		} else if i == checkTurns || i > checkTurns && ns < bulk {
			bulk = ns
		}
	}
	wire := max(0, 2*probeBurst-float64(l.BurstBytes))
	if l.PacketBytes > 0 {
		wire *= 1 + float64(l.PacketExtra)/float64(l.PacketBytes)
	}
	wantTurn := 2 * (l.Latency + l.Send + l.Recv)
	wantBulk := wantTurn + wire*l.Byte + 2*probeBurst*(l.RecvByte+l.SendByte)
	if differ(turn, wantTurn) || differ(bulk, wantBulk) {
		changed = 1
	}
	return changed, o.say(ctx, -1, 0)
}

// differ reports whether a time, ns, is far from what it was.
func differ(now, was float64) bool {
	return now > mostChanged*was+changeLeast || was > mostChanged*now+changeLeast
}
