package costs

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Summary is what is kept of repeated measurements of one time, in nanoseconds.
type Summary struct {
	N        int     `json:"n"`        // samples
	Outliers int     `json:"outliers"` // of them outside of Tukey's fences, 1.5 quartile distances from the quartiles
	Mean     float64 `json:"mean_ns"`
	Half     float64 `json:"half_ns"` // half the width of the mean's 95% confidence interval; 0 with one sample
	Min      float64 `json:"min_ns"`
	P50      float64 `json:"p50_ns"` // what predictions use: one disturbed sample doesn't move it
	P95      float64 `json:"p95_ns"`
	Max      float64 `json:"max_ns"`
}

// Confidence is the level of the intervals.
const Confidence = 0.95

// Summarize sums up samples in nanoseconds, in any order; they are not changed.
// Outliers count like all others. No samples make the zero Summary.
func Summarize(samples []float64) Summary {
	if len(samples) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, sorted, nil) }
	s := Summary{
		N: len(sorted), Mean: mean(sorted), Half: half(sorted),
		Min: sorted[0], P50: Median(sorted), P95: quantile(0.95), Max: sorted[len(sorted)-1],
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
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.5 + Confidence/2)
	return t * stat.StdDev(samples, nil) / math.Sqrt(n)
}

// Median is the middle of the values, of an even number of them the mean of the
// two in the middle; 0 without any. They are not changed.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Stop says when to stop repeating a measurement. Methods that are compared must
// use the same rule. Zero fields have defaults.
type Stop struct {
	Rel    float64       // enough when Half is at most this part of Mean; 0: 0.025
	Least  int           // samples, whatever they say; 0: 5
	Most   int           // samples; 0: 1000
	Budget time.Duration // for all samples; Least goes before it; 0: 1 s
}

// WithDefaults returns s with its zero fields filled in.
func (s Stop) WithDefaults() Stop {
	if s.Rel == 0 {
		s.Rel = 0.025
	}
	if s.Least == 0 {
		s.Least = 5
	}
	if s.Most == 0 {
		s.Most = 1000
	}
	if s.Budget == 0 {
		s.Budget = time.Second
	}
	return s
}

// Done reports whether the samples taken in the time spent suffice.
func (s Stop) Done(samples []float64, spent time.Duration) bool {
	s = s.WithDefaults()
	n := len(samples)
	switch {
	case n < s.Least || n < 1:
		return false
	case n >= s.Most || spent >= s.Budget:
		return true
	}
	return n > 1 && half(samples) <= s.Rel*stat.Mean(samples, nil)
}
