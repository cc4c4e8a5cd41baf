package derived

import (
	"fmt"

	"gonum.org/v1/gonum/stat"
)

// Gamma says how many times as long a message takes to several ranks at once as to one
// (the paper's section 4.1).
type Gamma struct {
	at          []float64 // by number of ranks, the sender included, from 2 on
	base, slope float64   // of the line beyond them
}

// NewGamma returns γ from the times of a linear bcast: times[0] is that between 2 ranks,
// times[1] that between 3, and so on, all in one unit. A time below the one before counts
// as equal to it. Beyond the last one γ follows the least-squares line through all, since
// it is nearly linear (section 4.1).
func NewGamma(times []float64) (Gamma, error) {
	g := Gamma{at: make([]float64, len(times))}
	if len(times) == 0 {
		return g, fmt.Errorf("γ from no times; at least that between 2 ranks is needed")
	}
	x := make([]float64, len(times))
	for i, ns := range times {
		if !isPositive(ns) {
			return Gamma{}, fmt.Errorf("γ(%d): time %v; allowed are numbers above 0", i+2, ns)
		}
		x[i], g.at[i] = float64(i+2), ns/times[0]
		if i > 0 {
			g.at[i] = max(g.at[i], g.at[i-1])
		}
	}
	g.base = 1
	if len(times) > 1 {
		g.base, g.slope = stat.LinearRegression(x, g.at, nil, false)
	}
	return g, nil
}

// Of returns γ of so many ranks, the sender included. It is 1 for 2 ranks or less, and
// never falls.
func (g Gamma) Of(ranks int) float64 {
	switch {
	case ranks <= 2 || len(g.at) == 0:
		return 1
	case ranks-2 < len(g.at):
		return g.at[ranks-2]
	}
	return max(g.at[len(g.at)-1], g.base+float64(g.slope*float64(ranks)))
}

// Measured returns γ of 2, 3, … ranks, as far as it was measured.
func (g Gamma) Measured() []float64 { return g.at }
