// Package clock compares clocks of two machines, with a proven bound on the error.
//
// Nobody can see how long a message takes in one direction. But it takes no less than no
// time, and this bounds the offset from both sides. A message leaves at 5 and comes
// at 9 on the other clock: so the other one is at most 4 ahead. Each ping gives such an
// interval, and the offset lies in all of them. SKaMPI estimates so too, and HCA3 (Hunold
// and Carpen-Amarie, Cluster 2018) builds on it: it beats half of the shortest round trip, as
// the quickest ways there and back may be of different pings.
//
// The package reads no clock and opens no connection: callers hand both in. Times are
// nanoseconds.
//
//	m, same, err := clock.Ask(conn, now, id, 100) // at the other end: clock.Answer(conn, now, id)
//	t, off := m.Global(now())                     // on the other clock, at most off ns wrong
package clock

import (
	"cmp"
	"slices"
)

// Quartz is how much faster one clock may run than another, parts per million: two
// oscillators of 50 ppm each.
const Quartz = 100

// Ping is a message there and back. T1 and T4 are when the asker sent and heard, on its
// clock; T2 and T3 are when the other heard and answered, on the other's.
type Ping struct{ T1, T2, T3, T4 int64 }

// Fix is one comparison: at the asker's At the other clock was Ahead ns ahead, at most
// Error more or less.
type Fix struct{ At, Ahead, Error int64 }

// Estimate returns the fix by pings at the moment when the last one came back, for clocks
// with rates within ppm of each other. It is false without pings, and if they
// contradict each other: then a clock has stepped between them, or they are of other clocks.
func Estimate(all []Ping, ppm float64) (Fix, bool) {
	if len(all) == 0 {
		return Fix{}, false
	}
	at := slices.MaxFunc(all, func(a, b Ping) int { return cmp.Compare(a.T4, b.T4) }).T4
	low, high := int64(-1<<62), int64(1<<62)
	for _, p := range all {
		if p.T4 < p.T1 || p.T3 < p.T2 {
			return Fix{}, false
		}
		drifted := drift(at-p.T1, ppm)
		low, high = max(low, p.T3-p.T4-drifted), min(high, p.T2-p.T1+drifted)
	}
	if low > high {
		return Fix{}, false
	}
	return middle(at, low, high), true
}

// middle returns the fix of the interval from low to high.
func middle(at, low, high int64) Fix {
	half := (high - low + 1) / 2
	return Fix{At: at, Ahead: low + half, Error: half}
}

// drift returns by how much clocks may have gone apart in a time.
func drift(since int64, ppm float64) int64 {
	if since == 0 {
		return 0
	}
	return int64(ppm*float64(max(since, -since))/1e6) + 1
}

// Map turns times of one clock into those of another. The zero value is of one clock for
// both. It is plain data: a writer beside readers needs a lock.
type Map struct {
	Fixes []Fix   `json:"fixes,omitempty"` // by At, ascending
	PPM   float64 `json:"ppm,omitempty"`   // how much faster one may run
}

// Add adds a fix later than all before. It reports whether they fit
// together; if they don't a clock has stepped.
func (m *Map) Add(f Fix) (fits bool) {
	fits = true
	if n := len(m.Fixes); n > 0 {
		last := m.Fixes[n-1]
		apart := f.Ahead - last.Ahead
		fits = max(apart, -apart) <= f.Error+last.Error+drift(f.At-last.At, m.PPM)
	}
	m.Fixes = append(m.Fixes, f)
	return fits
}

// Global returns the time of the other clock at time t of this one, and how far off it
// may be. Both fixes around t bound the offset, each the less the further away it is; the
// answer is the middle of both bounds. If these exclude each other, as a clock has stepped between
// them, the bound spans both.
func (m *Map) Global(t int64) (global, off int64) {
	if len(m.Fixes) == 0 {
		return t, 0
	}
	i, _ := slices.BinarySearchFunc(m.Fixes, t, func(f Fix, t int64) int { return cmp.Compare(f.At, t) })
	around := m.Fixes[max(i-1, 0):min(i+1, len(m.Fixes))]
	low, high := m.cone(around[0], t)
	if len(around) > 1 {
		low2, high2 := m.cone(around[1], t)
		if max(low, low2) <= min(high, high2) {
			low, high = max(low, low2), min(high, high2)
		} else {
			low, high = min(low, low2), max(high, high2)
		}
	}
	f := middle(t, low, high)
	return t + f.Ahead, f.Error
}

// cone returns the bounds of the offset at another time, by a fix.
func (m *Map) cone(f Fix, t int64) (low, high int64) {
	d := drift(t-f.At, m.PPM)
	return f.Ahead - f.Error - d, f.Ahead + f.Error + d
}

// Worst returns the largest error of a fix.
func (m *Map) Worst() (off int64) {
	for _, f := range m.Fixes {
		off = max(off, f.Error)
	}
	return off
}
