package derived

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/tierflow/tierflow/costs"
)

// Row is one experiment: a path and how long it took.
type Row struct {
	Coeff
	NS float64 // above 0
}

// Limits of the regression.
const (
	huber      = 1.345  // scales of residuals; beyond, a row counts less: 95% efficient for normal errors
	normalMAD  = 0.6745 // median of the absolute deviations of a normal distribution, in its scale
	mostRounds = 50
	exact      = 1e-12 // a residual up to it, as a part of the time, is none
)

// Fit returns α and β from experiments with one algorithm (section 4.2). Each row is
// brought to the canonical form α + β·M = T, where M = Beta/Alpha and T = NS/Alpha. Then
// Huber's regression finds the line: rows far from it count less. Residuals are parts of
// T, not ns, so that the small messages count as much as the large ones.
//
// Neither number gets negative: the other one takes it all then. Fewer than two different M are an
// error. combine is the time of a byte of a reduction, ns; its part is taken off the times first.
func Fit(rows []Row, combine float64) (Line, error) {
	x, y := make([]float64, len(rows)), make([]float64, len(rows))
	least, most := math.Inf(1), math.Inf(-1)
	for i, r := range rows {
		ns := r.NS - r.Combined*combine
		if !isPositive(r.Alpha) || !(r.Beta >= 0) || !isPositive(ns) {
			return Line{}, fmt.Errorf("experiment %d: %v messages, %v bytes, %v ns; allowed are numbers above 0", i, r.Alpha, r.Beta, r.NS)
		}
		x[i], y[i] = r.Beta/r.Alpha, ns/r.Alpha
		least, most = min(least, x[i]), max(most, x[i])
	}
	if !(least < most) {
		return Line{}, fmt.Errorf("%d experiments of one length; a line needs two different ones", len(rows))
	}
	l := regressLine(x, y)
	l.Combine = combine
	return l, nil
}

func isPositive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

// regressLine finds the line by least squares again and again, with weights from the
// residuals of the line before.
func regressLine(x, y []float64) Line {
	weights, off := make([]float64, len(y)), make([]float64, len(y))
	for i := range y {
		weights[i] = 1 / (y[i] * y[i])
	}
	l := leastSquares(x, y, weights)
	for range mostRounds {
		for i := range y {
			off[i] = math.Abs(y[i]-l.Alpha-l.Beta*x[i]) / y[i]
		}
		scale := costs.Median(off) / normalMAD
		if scale < exact {
			break
		}
		for i := range y {
			weights[i] = 1 / (y[i] * y[i])
			if off[i] > huber*scale {
				weights[i] *= huber * scale / off[i]
			}
		}
		next := leastSquares(x, y, weights)
		done := math.Abs(next.Alpha-l.Alpha) <= exact*l.Alpha && math.Abs(next.Beta-l.Beta) <= exact*l.Beta
		if l = next; done {
			break
		}
	}
	return l
}

// leastSquares finds the best line without negative numbers.
func leastSquares(x, y, weights []float64) Line {
	alpha, beta := stat.LinearRegression(x, y, weights, false)
	switch {
	case alpha < 0:
		_, beta = stat.LinearRegression(x, y, weights, true)
		return Line{Beta: max(0, beta)}
	case beta < 0:
		return Line{Alpha: stat.Mean(y, weights)}
	}
	return Line{Alpha: alpha, Beta: beta}
}
