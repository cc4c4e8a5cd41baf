package costs

import (
	"fmt"
	"slices"
)

// Pipeline sums up runs of a dataflow shape: how long one segment takes by itself, and when each of
// many was complete. One measurement of a configuration (shape, choices, segment size, window)
// serves all message sizes.
type Pipeline struct {
	Whole    Summary      `json:"whole"`    // the slowest rank's time for all segments
	Segments int          `json:"segments"` // that were measured
	Phases   int          `json:"phases"`   // a segment passes through
	Leaders  []Completion `json:"leaders"`  // by group of level 0
}

// Completion is when segments of a pipeline were complete on a leader and the ranks below it, in
// nanoseconds from the start.
type Completion struct {
	Alone  float64   `json:"alone_ns"`  // a run of one segment, until all of them had ended
	Fill   float64   `json:"fill_ns"`   // of many: until the first segment was complete on all of them
	Stable float64   `json:"stable_ns"` // from one segment to the next
	Drain  float64   `json:"drain_ns"`  // from the last one until all of them had ended
	Done   []float64 `json:"done_ns"`   // by segment: until it was complete on all of them
}

// Extra is how many segments more than phases are measured, to see a pipeline in
// full: HAN's figure 3 shows the cost of stages settled after a few of 8.
const Extra = 8

// NewCompletion derives a leader's part. alone is the time of a segment by itself, done when each
// of many was complete on all ranks below the leader, and end when the last of these ranks ended,
// ns. window is how many segments were in flight.
func NewCompletion(alone float64, done []float64, end float64, window int) Completion {
	c := Completion{Alone: alone, Done: slices.Clone(done)}
	if len(done) == 0 {
		return c
	}
	c.Fill = done[0]
	c.Stable = stablePace(done, min(max(window, 1), len(done)-1))
	c.Drain = max(0, end-slices.Max(done))
	return c
}

// stablePace is the median time of a window of segments, per segment. They complete a window at a
// time, so the median of neighbours' differences would be about nothing.
func stablePace(done []float64, window int) float64 {
	var all []float64
	for i := window; i < len(done) && window > 0; i++ {
		all = append(all, (done[i]-done[i-window])/float64(window))
	}
	return max(0, Median(all))
}

// NS predicts the nanoseconds of u segments, the maximum over leaders. Beyond the measured segments
// each further one takes the stable time. Fewer are on the straight line between one by itself and
// all measured ones. (The first completions of many are no measure of few: later segments take
// their share of the links before the first is complete. Of allreduces over 4x2 with a window of 4
// the first of 12 segments took 2 to 3 times as long as one by itself.)
func (p Pipeline) NS(u int64) (float64, error) {
	if u < 1 {
		return 0, fmt.Errorf("pipeline: %d segments; at least one is needed", u)
	}
	if u > int64(p.Segments) && p.Segments < 2 {
		return 0, fmt.Errorf("%w: %d segments from a measurement of %d: at least two are needed to see what a further one costs", ErrUnmeasured, u, p.Segments)
	}
	ns := 0.0
	for _, l := range p.Leaders {
		ns = max(ns, l.timeOf(u))
	}
	return ns, nil
}

// lastEnd is the time until the last measured segment, ns.
func (c Completion) lastEnd() float64 { return slices.Max(append([]float64{0}, c.Done...)) + c.Drain }

// eachTime is the time of a further segment, between one and all measured ones.
func (c Completion) eachTime() float64 {
	return max(0, c.lastEnd()-c.Alone) / float64(max(len(c.Done)-1, 1))
}

func (c Completion) timeOf(u int64) float64 {
	if n := int64(len(c.Done)); u > n {
		return c.Alone + float64(n-1)*c.eachTime() + float64(u-n)*c.Stable
	}
	return c.Alone + float64(u-1)*c.eachTime()
}
