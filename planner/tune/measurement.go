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

// NewMeasurement sums up a meter's result. It doesn't know the links.
func NewMeasurement(r tasks.Request, t *levels.Topology, p tasks.Plan, timing measure.Timing) table.Measurement {
	at := table.PointOf(r, t, "")
	m := table.Measurement{Collective: at.Collective, Levels: at.Levels, Place: at.Place, Bytes: at.Bytes, Plan: p.String(), Samples: len(timing.Series)}
	m.NS, m.Low, m.High = medianInterval(timing.Series)
	return m
}

// Intervals describes the intervals of a table.
const Intervals = "95% interval of the median, by order statistics"

// medianInterval is the median and its 95% interval: from one of the
// samples in order to another one. Few outliers don't move it.
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
