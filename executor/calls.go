package executor

import "math/rand/v2"

// Calls counts the calls of one collective with one plan.
type Calls struct {
	Collective, Plan string
	Count            int64 // that have begun
	// Took is how long calls took from their begin to their end on this rank, ns, and Rate their bus bandwidth, bytes per
	// second: as of links that carry what has to be carried once. Calls with
	// buffers of less than 256 KiB are a sample: each one counts for 32.
	Took, Rate Histogram
}

// Tally counts calls. The lock of the endpoint that made it guards it.
type Tally struct{ Calls }

// maxTallies bounds the plans that a rank tells apart.
const maxTallies = 256

// OtherPlans is the plan of [Calls] for which a rank has no room: it tells 256 apart.
const OtherPlans = "other"

// Histogram counts values. Each is in the first bucket whose bound it doesn't exceed; the last bucket
// has no bound.
type Histogram struct {
	Buckets [histogramBounds + 1]int64
	Sum     int64 // of the values
}

const histogramBounds = 13

// The bounds of [Calls].Took, ns, and of [Calls].Rate, bytes per second. Each is four times the one before: a collective and
// a plan shall not have many series.
var (
	TookBounds = bounds(1000)    // 1 µs to 16.8 s
	RateBounds = bounds(100_000) // 100 kB/s to 1.7 TB/s
)

func bounds(least int64) (b [histogramBounds]int64) {
	for i := range b {
		b[i] = least << (2 * i)
	}
	return b
}

// add counts a value for several equal ones.
func (h *Histogram) add(value, weight int64, bounds *[histogramBounds]int64) {
	i := 0
	for i < len(bounds) && value > bounds[i] {
		i++
	}
	h.Buckets[i] += weight
	h.Sum += value * weight
}

// A call with buffers of timedBytes or more is timed. Of others one in timedEvery is, on average, and counts for all: two readings of
// the clock take an eighth of the time of the smallest ones.
const (
	timedBytes = 256 << 10
	timedEvery = 32
)

// timing is what a call needs to be timed.
type timing struct {
	weight int64 // for how many calls it counts; 0: it isn't timed
	since  int64 // when it began, on the clock of traces
}

// drawUntimed returns how many calls are not timed until the next one is: timedEvery-1 in the mean, and never in step with what
// a program repeats.
func drawUntimed() int32 { return rand.Int32N(2*timedEvery - 1) }
