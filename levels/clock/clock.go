// Package clock compares clocks of two machines, with a proven bound on the error.
//
// Nobody can see how long a message takes in one direction. But it takes no less than no
// time, and that bounds the offset from both sides. A message that leaves at 5 and comes
// at 9 on another clock says that this one is at most 4 ahead. Each ping gives such an
// interval, and the offset lies in all of them. So does SKaMPI's estimate, which HCA3 (Hunold
// and Carpen-Amarie, Cluster 2018) builds on: it beats half of the shortest round trip, as
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

// Fix says that at the asker's At the other clock was Ahead ns ahead of the asker's, at most
// Error more or less.
type Fix struct{ At, Ahead, Error int64 }

// Estimate returns what pings say of the moment when the last one came back, for clocks
// whose rates differ by no more than ppm. It is false without pings, and if they
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

// middle returns the fix whose interval is from low to high.
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

// Map turns times of one clock into those of another. The zero value is of two that are
// the same. It is plain data: whoever adds to one that others read must see to that.
type Map struct {
	Fixes []Fix   `json:"fixes,omitempty"` // by At, ascending
	PPM   float64 `json:"ppm,omitempty"`   // how much faster one may run
}

// Add adds a fix, which must be later than those before. It reports whether they fit
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

// Global returns what the other clock showed at time t of this one, and how far off that
// may be. Both fixes around t bound the offset, each the less the further away it is; the
// answer is the middle of what both allow. If that is nothing, as a clock has stepped between
// them, the bound spans both.
func (m *Map) Global(t int64) (global, off int64) {
	if len(m.Fixes) == 0 {
		return t, 0
	}
	i, _ := slices.BinarySearchFunc(m.Fixes, t, func(f Fix, t int64) int { return cmp.Compare(f.At, t) })
	var around []Fix
	if i > 0 {
		around = append(around, m.Fixes[i-1])
	}
	if i < len(m.Fixes) {
		around = append(around, m.Fixes[i])
	}
	low, high := m.cone(around[0], t)
	if len(around) > 1 {
		low2, high2 := m.cone(around[1], t)
		both, any := [2]int64{max(low, low2), min(high, high2)}, [2]int64{min(low, low2), max(high, high2)}
		if low, high = both[0], both[1]; low > high {
			low, high = any[0], any[1]
		}
	}
	f := middle(t, low, high)
	return t + f.Ahead, f.Error
}

// cone returns what a fix says of the offset at another time.
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
