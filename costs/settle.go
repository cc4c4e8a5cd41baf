package costs

// Series is what one stage task took on one leader, one time after the other:
// figure 3 of the paper.
type Series struct {
	Name    string    `json:"name"`    // sbib
	Leader  int       `json:"leader"`  // its group of level 0
	NS      []float64 `json:"ns"`      // by occurrence, median over repetitions
	From    int       `json:"from"`    // the first occurrence that is settled
	Settled bool      `json:"settled"` // at least three occurrences are
}
