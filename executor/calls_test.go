package executor

import (
	"testing"
	"time"
)

// A value is in the first bucket whose bound it doesn't exceed.
func TestHistogram(t *testing.T) {
	var h Histogram
	for value, bucket := range map[int64]int{1: 0, 1000: 0, 1001: 1, 4000: 1, 16_777_216_000: 12, 16_777_216_001: 13, 1 << 50: 13} {
		before := h
		h.add(value, 32, &TookBounds)
		before.Buckets[bucket] += 32
		before.Sum += 32 * value
		if h != before {
			t.Errorf("%d: %v, want %v", value, h, before)
		}
	}
}

// Each call of a program that repeats some has the same chance to be timed: none of 16 is left out.
func TestTimedCallsAreDrawn(t *testing.T) {
	const period, rounds = 16, 4000
	a, tally := &accounts{callsUntimed: drawUntimed()}, &Tally{}
	var timed [period]int
	for i := range period * rounds {
		if a.countCall(tally, 8) > 0 {
			timed[i%period]++
		}
	}
	for i, n := range timed { // 125 each, by 11 or so
		if n < 60 || n > 190 {
			t.Errorf("call %d of %d is timed %d times of %d, others %v", i, period, n, rounds, timed)
		}
	}
	if n := a.countCall(tally, timedBytes); n != 1 {
		t.Errorf("a large call counts for %d", n)
	}
	if n := a.countCall(nil, timedBytes); n != 0 {
		t.Error("a call that nobody counts is timed")
	}
}

// A short beginning of a wait stands for those that are not measured, a long one for itself.
func TestWaitedSampled(t *testing.T) {
	for _, test := range []struct {
		count   uint32
		d, want time.Duration
	}{
		{sampleEvery, shortWait, sampleEvery * shortWait}, {2 * sampleEvery, shortWait + 1, shortWait + 1}, {sampleEvery + 1, shortWait, 0},
	} {
		w := driverState{waitCount: test.count}
		if w.waitedSampled(test.d); w.waitTime != test.want {
			t.Errorf("wait %d, %v: counts for %v, want %v", test.count, test.d, w.waitTime, test.want)
		}
	}
}
