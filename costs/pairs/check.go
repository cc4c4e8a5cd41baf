package pairs

import (
	"context"

	"github.com/tierflow/tierflow/costs/machine"
)

// Sizes and limits of a check of a known link.
const (
	checkTurns  = 6        // round trips
	checkTimes  = 2        // streams of checkCount messages of probeBurst bytes
	checkCount  = 2        // messages in such a stream
	mostChanged = 2.0      // times as long, or as short
	changeLeast = 30_000.0 // ns below which a difference never counts: processes wake up
)

// IsChanged reports whether messages take another time than a link says, and lets the
// follower go.
func (l *Leader) IsChanged(ctx context.Context, was machine.Link) (bool, error) {
	var turn, bulk float64 // ns
	for i := range checkTurns + checkTimes {
		size, count := int64(0), 0
		if i >= checkTurns {
			size, count = probeBurst, checkCount
		}
		t, err := l.Put(ctx, size, count)
		if err != nil {
			return false, err
		}
		if ns := float64(t.All); i < checkTurns && (i < 2 || ns < turn) { // the first connects
			turn = ns
		} else if i == checkTurns || i > checkTurns && ns < bulk {
			bulk = ns
		}
	}
	wire := max(0, checkCount*probeBurst-float64(was.BurstBytes))
	if was.PacketBytes > 0 {
		wire *= 1 + float64(was.PacketExtra)/float64(was.PacketBytes)
	}
	wantTurn := 2 * (was.Latency + was.Send + was.Recv)
	wantBulk := wantTurn + wire*was.Byte + checkCount*probeBurst*(was.RecvByte+was.SendByte)
	return differ(turn, wantTurn) || differ(bulk, wantBulk), l.End(ctx)
}

// differ reports whether a time, ns, is far from what it was.
func differ(now, was float64) bool {
	return now > mostChanged*was+changeLeast || was > mostChanged*now+changeLeast
}
