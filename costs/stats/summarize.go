// Package stats sums up repeated measurements of one time and says when they suffice.
//
// It never measures. It is apart from package costs because intervals of confidence
// need a library of linear algebra; reading costs does not.
//
//	for !stop.Done(ns, time.Since(begin)) {
//		ns = append(ns, once())
//	}
//	summary := stats.Summarize(ns)
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/tierflow/tierflow/costs"
)

// confidence is the level of the intervals.
const confidence = 0.95

// Summarize sums up samples in nanoseconds, in any order; they are not changed.
// Outliers count like all others. No samples make the zero [costs.Summary].
func Summarize(samples []float64) costs.Summary {
	if len(samples) == 0 {
		return costs.Summary{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, sorted, nil) }
	s := costs.Summary{
		N: len(sorted), Mean: mean(sorted), Half: half(sorted),
		Min: sorted[0], P50: costs.Median(sorted), P95: quantile(0.95), Max: sorted[len(sorted)-1],
	}
	low, high := quantile(0.25), quantile(0.75)
	fence := 1.5 * (high - low)
	for _, v := range sorted {
		if v < low-fence || v > high+fence {
			s.Outliers++
		}
	}
	return s
}

// mean is not outside of the samples, however it is rounded.
func mean(sorted []float64) float64 {
	return min(max(stat.Mean(sorted, nil), sorted[0]), sorted[len(sorted)-1])
}

// half is half the width of the confidence interval of the mean, after Student.
func half(samples []float64) float64 {
	n := float64(len(samples))
	if n < 2 {
		return 0
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.5 + confidence/2)
	return t * stat.StdDev(samples, nil) / math.Sqrt(n)
}
