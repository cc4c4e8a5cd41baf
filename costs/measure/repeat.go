package measure

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/costs/stats"
)

// subject is what is repeated. Its numbers, as many on all ranks, begin with this
// rank's time in nanoseconds.
type subject func(ctx context.Context) ([]float64, error)

// warm is how many repetitions come first and don't count: connections, pages and
// caches cost once.
const warm = 2

// samples are what rank 0 knows of a subject: by repetition, by rank, the numbers.
type samples [][][]float64

// repeatInTurns runs subjects in turns, so that a disturbance of the machine meets all of them, until the
// rule is satisfied for each. Each begins on all ranks at one time. Rank 0 gets the samples; the others
// get nil.
func (b *Bench) repeatInTurns(ctx context.Context, stop stats.Stop, subjects ...subject) ([]samples, error) {
	all, slowest := make([]samples, len(subjects)), make([][]float64, len(subjects))
	begin := time.Now()
	for round := 0; ; round++ {
		if round == warm {
			begin = time.Now()
		}
		for i, s := range subjects {
			over := b.Rank() == 0 && i == 0 && enough(stop, slowest, time.Since(begin))
			goOn, err := b.agreeOnStart(ctx, over)
			if err != nil || !goOn {
				return all, err
			}
			mine, err := s(ctx)
			if err != nil {
				return nil, err
			}
			values, err := b.gatherNumbers(ctx, mine)
			if err != nil {
				return nil, err
			}
			if round >= warm && b.Rank() == 0 {
				all[i] = append(all[i], values)
				slowest[i] = append(slowest[i], slowestTotal(values))
			}
		}
	}
}

func enough(stop stats.Stop, slowest [][]float64, spent time.Duration) bool {
	for _, s := range slowest {
		if !stop.Done(s, spent/time.Duration(len(slowest))) {
			return false
		}
	}
	return true
}

// slowestTotal is the slowest rank's time.
func slowestTotal(values [][]float64) float64 {
	ns := 0.0
	for _, v := range values {
		ns = max(ns, v[0])
	}
	return ns
}

// agreeOnStart agrees on when to begin, and returns then; or on the end, which is rank
// 0's to say.
func (b *Bench) agreeOnStart(ctx context.Context, over bool) (goOn bool, err error) {
	at := int64(0)
	if !over {
		at = time.Now().Add(b.notice).UnixNano()
	}
	if at, err = b.tellNumber(ctx, at); err != nil || at == 0 {
		return false, err
	}
	b.awaitTime(at)
	return true, nil
}

// column is one number of a rank, by repetition.
func (s samples) column(rank, i int) []float64 {
	all := make([]float64, len(s))
	for rep := range s {
		all[rep] = s[rep][rank][i]
	}
	return all
}

// totals are the slowest rank's times, by repetition.
func (s samples) totals() []float64 {
	all := make([]float64, len(s))
	for rep := range s {
		all[rep] = slowestTotal(s[rep])
	}
	return all
}
