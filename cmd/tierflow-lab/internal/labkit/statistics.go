package labkit

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// GeometricMean is that of the values above 0; 0 without any.
func GeometricMean(values []float64) float64 {
	positive := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !(v > 0) })
	if len(positive) == 0 {
		return 0
	}
	return stat.GeometricMean(positive, nil)
}

// Ratios returns how many times the values of a series are those of another one, as far as
// both go. Values without a positive counterpart are left out.
func Ratios(series, base []float64) (all []float64) {
	for i := range min(len(series), len(base)) {
		if base[i] > 0 {
			all = append(all, series[i]/base[i])
		}
	}
	return all
}

// RankCorrelation is Spearman's of two lists of equal length. Values are tied if each is at
// most so many times the next lower one; with 1 only equal values are. It is 1 if there is no
// order to be wrong in: for less than two values, and if all values of a list are tied.
func RankCorrelation(a, b []float64, tied float64) float64 {
	r := stat.Correlation(placesOf(a, tied), placesOf(b, tied), nil)
	if math.IsNaN(r) {
		return 1
	}
	return r
}

// placesOf returns each value's place in the order of values. Tied values share the mean of
// their places.
func placesOf(values []float64, tied float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	places := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] <= tied*values[order[to-1]] {
			to++
		}
		for _, i := range order[from:to] {
			places[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return places
}
