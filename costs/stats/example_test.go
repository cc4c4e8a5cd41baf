package stats_test

import (
	"fmt"

	"github.com/tierflow/tierflow/costs/stats"
)

func ExampleSummarize() {
	s := stats.Summarize([]float64{1020, 1000, 1010, 990, 980, 1450})
	fmt.Printf("%d samples, %d outlier, p50 %.0f ns, mean %.0f ± %.0f ns\n", s.N, s.Outliers, s.P50, s.Mean, s.Half)
	// Output: 6 samples, 1 outlier, p50 1005 ns, mean 1075 ± 193 ns
}
