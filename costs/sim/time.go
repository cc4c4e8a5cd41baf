package sim

import "time"

// Time is a time or a duration in picoseconds. An int64 of them lasts 106 days.
type Time int64

// Units of [Time].
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Nanoseconds returns the time in ns.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// Duration returns the time, cut to whole nanoseconds.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// String prints the time like a [time.Duration], to the nanosecond.
func (t Time) String() string { return t.Duration().String() }

// rate is ps for a byte.
type rate float64

// nanoseconds returns ns as a time, rounded.
func nanoseconds(ns float64) Time { return rate(ns).of(int64(Nanosecond)) }

// of returns the time for n bytes, rounded. The conversion of the product keeps processors from
// fusing it with the sum: that would round differently.
func (r rate) of(n int64) Time { return Time(float64(float64(n)*float64(r)) + 0.5) }
