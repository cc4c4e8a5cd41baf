package costs

import "math"

// Series is what one stage task took on one leader, one time after the other:
// figure 3 of the paper.
type Series struct {
	Name    string    `json:"name"`    // sbib
	Leader  int       `json:"leader"`  // its group of level 0
	NS      []float64 `json:"ns"`      // by occurrence, median over repetitions
	From    int       `json:"from"`    // the first occurrence that is settled
	Settled bool      `json:"settled"` // at least three occurrences are
}

const (
	settledSpread = 0.1 // of the median
	leastSettled  = 3
)

// Settle says from which occurrence on the cost of a stage is stable: all further
// ones, at least three, are within a tenth of their median. Without such a place
// the last three are as good as any.
func Settle(ns []float64) (from int, settled bool) {
	for from = 0; from+leastSettled <= len(ns); from++ {
		rest := ns[from:]
		middle, far := Median(rest), 0.0
		for _, v := range rest {
			far = max(far, math.Abs(v-middle))
		}
		if far <= settledSpread*middle {
			return from, true
		}
	}
	return max(0, len(ns)-leastSettled), false
}
