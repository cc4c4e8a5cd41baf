package executor

import (
	"math/rand/v2"
	"slices"
)

// Calls counts the calls of one collective with one plan.
type Calls struct {
	Collective, Plan string
	Count            int64 // calls begun
	// Took is the time of calls from begin to end on this rank, ns. Rate is their bus bandwidth,
	// bytes per second, as if links carried each necessary byte once. Calls with buffers of less
	// than 256 KiB are sampled: each one measured counts for 32.
	Took, Rate Histogram
}

// Tally counts calls. The lock of the endpoint that made it guards it.
type Tally struct{ Calls }

// maxTallies bounds the plans a rank tells apart.
const maxTallies = 256

// OtherPlans is the plan of [Calls] beyond the 256 a rank tells apart.
const OtherPlans = "other"

// Histogram counts values. Each is in the first bucket with a bound not below it; the last bucket
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
	i, _ := slices.BinarySearch(bounds[:], value)
	h.Buckets[i] += weight
	h.Sum += value * weight
}

// A call with buffers of timedBytes or more is timed. Of the smaller ones one in timedEvery is, on
// average, and counts for all: two readings of the clock take an eighth of the time of the
// smallest.
const (
	timedBytes = 256 << 10
	timedEvery = 32
)

// timing is the state of a call being timed.
type timing struct {
	weight int64 // the number of calls it counts for; 0: it isn't timed
	since  int64 // its begin, on the clock of traces
}

// drawUntimed returns how many calls go untimed until the next timed one: timedEvery-1 in the mean,
// and never in step with a loop of the program.
func drawUntimed() int32 { return rand.Int32N(2*timedEvery - 1) }
