package costs

import "slices"

// Summary sums up repeated measurements of one time, in nanoseconds.
type Summary struct {
	N        int     `json:"n"`        // samples
	Outliers int     `json:"outliers"` // of them outside of Tukey's fences, 1.5 quartile distances from the quartiles
	Mean     float64 `json:"mean_ns"`
	Half     float64 `json:"half_ns"` // half the width of the mean's 95% confidence interval; 0 with one sample
	Min      float64 `json:"min_ns"`
	P50      float64 `json:"p50_ns"` // for predictions: one disturbed sample doesn't move it
	P95      float64 `json:"p95_ns"`
	Max      float64 `json:"max_ns"`
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
