package costs

import "math"

// Series is the times of one stage task on one leader, one after the other: figure 3 of the paper.
type Series struct {
	Name    string    `json:"name"`    // sbib
	Leader  int       `json:"leader"`  // its group of level 0
	NS      []float64 `json:"ns"`      // by occurrence, median over repetitions
	From    int       `json:"from"`    // the first counted occurrence
	Settled bool      `json:"settled"` // from there on the cost is stable, see [Settle]
}

const (
	settledSpread = 0.1 // of the median
	leastSettled  = 3
)

// Settle finds the occurrence from which on the cost of a stage is stable. From there on it, and
// the median of any three neighbours, at least one such, are within a tenth of the median of all.
// So a single disturbed one later doesn't count. Without such a place the second half is as good as
// any.
func Settle(ns []float64) (from int, settled bool) {
	for from = 0; from+leastSettled <= len(ns); from++ {
		middle := Median(ns[from:])
		far := math.Abs(ns[from] - middle)
		for i := from; i+leastSettled <= len(ns); i++ {
			far = max(far, math.Abs(Median(ns[i:i+leastSettled])-middle))
		}
		if far <= settledSpread*middle {
			return from, true
		}
	}
	return len(ns) / 2, false
}
