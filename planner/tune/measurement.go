package tune

import (
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// NewMeasurement sums up what a meter returned. It doesn't know what the links are.
func NewMeasurement(r tasks.Request, t *levels.Topology, p tasks.Plan, timing measure.Timing) table.Measurement {
	at := table.PointOf(r, t, "")
	m := table.Measurement{Collective: at.Collective, Levels: at.Levels, Place: at.Place, Bytes: at.Bytes, Plan: p.String(), Samples: len(timing.Series)}
	m.NS, m.Low, m.High = medianInterval(timing.Series)
	return m
}

// Intervals says what the intervals of a table are.
const Intervals = "95% interval of the median, by order statistics"

// medianInterval is the median and its 95% interval: that between two of the
// samples in order, which few outliers don't move.
func medianInterval(samples []float64) (median, low, high float64) {
	if len(samples) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	n := float64(len(sorted))
	off := int(0.98 * math.Sqrt(n)) // 1.96 standard deviations of a binomial of half
	middle := len(sorted) / 2
	return costs.Median(sorted), sorted[max(0, middle-off-1+len(sorted)%2)], sorted[min(len(sorted)-1, middle+off)]
}
