package measure

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
)

// Passage is the time of a message from one rank to another, ns.
type Passage struct {
	Alone  float64 // half a round trip
	Stream float64 // one of several in a row
}

// Passage measures messages of n bytes, 1 or more, between two ranks while all others
// wait.
func (b *Bench) Passage(ctx context.Context, from, to levels.Rank, n int64, stop stats.Stop) (Passage, error) {
	return passage(ctx, b, pair{from, to}, n, stop)
}

// Passage is [Bench.Passage] on simulated time.
func (s *Simulated) Passage(ctx context.Context, from, to levels.Rank, n int64, stop stats.Stop) (Passage, error) {
	return passage(ctx, s, pair{from, to}, n, stop)
}

func passage(ctx context.Context, c stopwatch, between pair, n int64, stop stats.Stop) (p Passage, err error) {
	rounds, count := smallRounds, smallCount
	if n > middleBytes {
		rounds, count = largeRounds, largeCount
	}
	one, name := []pair{between}, fmt.Sprintf(" %d-%d of %d", between.a, between.b, n)
	trip, stream := turnScript("passage"+name, one, n, rounds), streamScript("passages"+name, one, n, count, count, false)
	all, err := c.times(ctx, stop, trip, stream)
	if err != nil {
		return p, fmt.Errorf("measure messages of %d bytes: %w", n, err)
	}
	return Passage{all[0].Slowest.P50 / float64(2*rounds), all[1].Slowest.P50 / float64(count)}, nil
}
