package pairs

import (
	"context"
	"fmt"
	"time"
)

// Bounds of a visit.
const (
	pingTime    = 2 * time.Millisecond // after it no small message is sent any more
	fewestPings = 5
	mostPings   = 100
	bulkTime    = 3 * time.Millisecond // a longer transfer is the last one
	firstBulk   = 64 << 10             // bytes
	mostBulk    = 4 << 20              // bytes
)

// VisitLimit is the follower's limit for a leader's visit.
var VisitLimit = Limit{Bytes: mostBulk, Count: 1}

// Visit is a leader's measurements of its line. Rates are bytes per second.
type Visit struct {
	First   time.Duration `json:"first_ns"`   // round trip of the first message, with the connection
	Latency time.Duration `json:"latency_ns"` // one way, of the best round trip
	Out     float64       `json:"bytes_per_second_ab"`
	Back    float64       `json:"bytes_per_second_ba"`
	// Ahead is how much later the follower's clock is, as far as half a round trip tells; 0 if it
	// is no more than the latency.
	Ahead time.Duration `json:"clock_ahead_ns"`
}

// Visit measures, and lets the follower go. An error names the failed part.
func (l *Leader) Visit(ctx context.Context) (v Visit, err error) {
	doing := "the first message"
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, err)
		}
	}()
	best := time.Duration(0)
	for began, i := time.Now(), 0; i < fewestPings || i < mostPings && time.Since(began) < pingTime; i++ {
		t, err := l.Put(ctx, 0, 0)
		if err != nil {
			return v, err
		}
		switch {
		case i == 0:
			v.First, doing = t.All, "small messages"
		case best == 0 || t.All < best:
			best, v.Ahead = t.All, t.Ahead
		}
	}
	if v.Latency = best / 2; v.Ahead.Abs() <= v.Latency {
		v.Ahead = 0
	}
	for _, way := range []struct {
		name string
		rate *float64
		move func(n int64) (time.Duration, error)
	}{
		{"there", &v.Out, func(n int64) (time.Duration, error) { t, err := l.Put(ctx, n, 1); return t.All, err }},
		{"back", &v.Back, func(n int64) (time.Duration, error) { return l.Get(ctx, n) }},
	} {
		for n := int64(firstBulk); n <= mostBulk; n *= 4 {
			doing = fmt.Sprintf("%d bytes %s", n, way.name)
			took, err := way.move(n)
			if err != nil {
				return v, err
			}
			*way.rate = max(*way.rate, rate(n, took, v.Latency))
			if took > bulkTime {
				break
			}
		}
	}
	doing = "the end"
	return v, l.End(ctx)
}

// rate returns bytes per second. A transfer takes a latency, but not most of its time.
func rate(n int64, took, latency time.Duration) float64 {
	return float64(n) / max(took-min(latency, took/2), 1).Seconds()
}
