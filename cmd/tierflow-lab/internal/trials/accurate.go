package trials

import (
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
)

// accuracy is how good predictions are.
type accuracy struct {
	Cells       int     `json:"cells"`
	Median      float64 `json:"median_error"`       // of all, as a share of the measured time
	LargeCells  int     `json:"large_cells"`        // of largeCell bytes and more
	LargeMedian float64 `json:"large_median_error"` // of these
	Within      float64 `json:"large_within_15"`    // share of these with an error of at most 15%
	Sizes       int     `json:"sizes"`              // collectives × sizes with at least three plans
	Rank        float64 `json:"rank_correlation"`   // the median over these
	RankLeast   float64 `json:"rank_correlation_least"`
	RankHigh    float64 `json:"rank_correlation_high"` // share of these with at least 0.9
}

// largeCell is from how many bytes on predictions are held to 15%.
const largeCell = 16 << 10

// ratio returns the predicted time by the measured one.
func (c *cell) ratio() float64 { return c.Simulated / c.Measured }

// distance returns how far the ratio is from 1, the same for twice and half.
func (c *cell) distance() float64 { return math.Abs(math.Log(c.ratio())) }

func sumUpAccuracy(cells []cell) accuracy {
	a := accuracy{Cells: len(cells)}
	var all, large []float64
	bySize := map[string][]cell{}
	for _, c := range cells {
		off := math.Abs(c.ratio() - 1)
		if all = append(all, off); c.Bytes >= largeCell {
			large = append(large, off)
			if off <= 0.15 {
				a.Within++
			}
		}
		key := fmt.Sprint(c.Collective, c.Bytes)
		bySize[key] = append(bySize[key], c)
	}
	var ranks []float64
	for _, plans := range bySize {
		if len(plans) >= 3 {
			ranks = append(ranks, rankCorrelation(plans))
		}
	}
	slices.Sort(ranks)
	a.Median, a.LargeCells, a.LargeMedian = kit.Round(costs.Median(all), 1e4), len(large), kit.Round(costs.Median(large), 1e4)
	a.Within = kit.Round(a.Within/float64(max(1, len(large))), 1e4)
	if a.Sizes = len(ranks); a.Sizes > 0 {
		from, _ := slices.BinarySearch(ranks, 0.9-1e-9)
		a.Rank, a.RankLeast = kit.Round(costs.Median(ranks), 1e4), kit.Round(ranks[0], 1e4)
		a.RankHigh = kit.Round(float64(len(ranks)-from)/float64(len(ranks)), 1e4)
	}
	return a
}

// rankCorrelation is Spearman's between measured and predicted times. Times that differ by
// less than tied count as equal: their order is chance.
func rankCorrelation(plans []cell) float64 {
	var measured, simulated []float64
	for _, c := range plans {
		measured, simulated = append(measured, c.Measured), append(simulated, c.Simulated)
	}
	return labkit.RankCorrelation(measured, simulated, tied)
}

// tied is the ratio of two times below which they are equal.
const tied = 1.05

// String says it in a few lines.
func (a accuracy) String() string {
	return fmt.Sprintf(`%d predictions: median error %.1f%%
%d of 16KiB and more: median error %.1f%%, within 15%%: %.0f%%
rank correlation over the plans of a size: median %.2f, least %.2f, at least 0.9 in %.0f%% of %d sizes
`, a.Cells, 100*a.Median, a.LargeCells, 100*a.LargeMedian, 100*a.Within, a.Rank, a.RankLeast, 100*a.RankHigh, a.Sizes)
}
