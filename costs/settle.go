package costs

import "math"

// Series is what one stage task took on one leader, one time after the other:
// figure 3 of the paper.
type Series struct {
	Name    string    `json:"name"`    // sbib
	Leader  int       `json:"leader"`  // its group of level 0
	NS      []float64 `json:"ns"`      // by occurrence, median over repetitions
	From    int       `json:"from"`    // the first occurrence that counts
	Settled bool      `json:"settled"` // from there on the cost is stable, see [Settle]
}

const (
	settledSpread = 0.1 // of the median
	leastSettled  = 3
)

// Settle says from which occurrence on the cost of a stage is stable: it, and the
// median of any three neighbours from there on, at least one such, are within a
// tenth of the median of all of them. So one that is disturbed later doesn't count. Without
// such a place the second half is as good as any.
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
