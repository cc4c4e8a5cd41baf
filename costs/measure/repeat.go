package measure

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
)

// subject is repeated. Its numbers, as many on all ranks, begin with this rank's time in
// nanoseconds.
type subject func(ctx context.Context) ([]float64, error)

// warm is how many repetitions come first and don't count: connections, pages and
// caches cost once.
const warm = 2

// samples are rank 0's numbers of a subject, by repetition and by rank.
type samples [][][]float64

// repeatInTurns runs subjects in turns until the rule is satisfied for each: so a disturbance of
// the machine meets all of them. Each begins on all ranks at one time. Rank 0 gets the samples; the
// others get nil.
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
				slowest[i] = append(slowest[i], slowestOf(values, 0))
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

// slowestOf returns the largest number of all ranks in one column.
func slowestOf(ranks [][]float64, column int) (ns float64) {
	for _, values := range ranks {
		ns = max(ns, values[column])
	}
	return ns
}

// agreeOnStart agrees on when to begin, and returns then; or on the end, if rank 0 says so.
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

// eachTime returns a number of each repetition, made of those of its ranks.
func (s samples) eachTime(number func(ranks [][]float64) float64) []float64 {
	all := make([]float64, len(s))
	for rep, ranks := range s {
		all[rep] = number(ranks)
	}
	return all
}

// column returns one number of a rank, by repetition.
func (s samples) column(rank levels.Rank, i int) []float64 {
	return s.eachTime(func(ranks [][]float64) float64 { return ranks[rank][i] })
}

// totals returns the slowest rank's times, by repetition.
func (s samples) totals() []float64 {
	return s.eachTime(func(ranks [][]float64) float64 { return slowestOf(ranks, 0) })
}
