package costs

import (
	"fmt"
	"slices"
)

// Pipeline is what one run of a dataflow shape showed: when each segment was
// complete. One measurement of a configuration (shape, choices, segment size,
// window) serves all message sizes.
type Pipeline struct {
	Whole    Summary      `json:"whole"`    // the slowest rank's time for all segments
	Segments int          `json:"segments"` // that were measured
	Phases   int          `json:"phases"`   // a segment passes through
	Leaders  []Completion `json:"leaders"`  // by group of level 0
}

// Completion is what one leader saw of a pipeline, in nanoseconds from the start.
type Completion struct {
	Fill   float64   `json:"fill_ns"`   // until the first segment was complete
	Stable float64   `json:"stable_ns"` // from one segment to the next
	Drain  float64   `json:"drain_ns"`  // from the last one to the end of the last rank it leads
	Done   []float64 `json:"done_ns"`   // by segment: until it was complete
}

// Extra is how many segments more than phases are measured, to see a pipeline in
// full: HAN's figure 3 shows the cost of stages settled after a few of 8.
const Extra = 8

// NewCompletion derives a leader's part from when its segments were complete, and
// when the last rank it leads ended.
func NewCompletion(done []float64, end float64) Completion {
	c := Completion{Done: slices.Clone(done)}
	if len(done) == 0 {
		return c
	}
	c.Fill = done[0]
	c.Stable = slope(done)
	c.Drain = max(0, end-slices.Max(done))
	return c
}

// slope is the median, over all pairs of segments, of the time per segment between
// them (Theil and Sen). Segments often complete a window at a time, so that the
// median of neighbours' differences would be about nothing.
func slope(done []float64) float64 {
	var all []float64
	for i := range done {
		for j := range i {
			all = append(all, (done[i]-done[j])/float64(i-j))
		}
	}
	return max(0, Median(all))
}

// NS predicts the nanoseconds that u segments take: of as many as were measured or
// fewer, when the last of them was complete, plus drain; of more, with the stable
// time for each further one; the maximum over leaders.
func (p Pipeline) NS(u int64) (float64, error) {
	if u < 1 {
		return 0, fmt.Errorf("pipeline: %d segments; at least one is needed", u)
	}
	if u > int64(p.Segments) && p.Segments < 2 {
		return 0, fmt.Errorf("pipeline: %d segments from a measurement of %d: at least two are needed to see what a further one costs", u, p.Segments)
	}
	ns := 0.0
	for _, l := range p.Leaders {
		ns = max(ns, l.ns(u))
	}
	return ns, nil
}

func (c Completion) ns(u int64) float64 {
	n := int64(len(c.Done))
	switch {
	case n == 0:
		return c.Drain
	case u <= n:
		return slices.Max(c.Done[:u]) + c.Drain
	}
	return slices.Max(c.Done) + float64(u-n)*c.Stable + c.Drain
}
