package stats

import (
	"cmp"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Stop says when to stop repeating a measurement. Methods that are compared must
// use the same rule. Zero fields have defaults.
type Stop struct {
	Rel    float64       // enough when Half is at most this part of Mean; 0: 0.025
	Least  int           // samples, whatever they say; 0: 5
	Most   int           // samples; 0: 1000
	Budget time.Duration // for all samples; Least goes before it; 0: 1 s
}

// WithDefaults returns s with its zero fields filled in.
func (s Stop) WithDefaults() Stop {
	return Stop{
		Rel: cmp.Or(s.Rel, 0.025), Least: cmp.Or(s.Least, 5),
		Most: cmp.Or(s.Most, 1000), Budget: cmp.Or(s.Budget, time.Second),
	}
}

// Done reports whether the samples taken in the time spent suffice.
func (s Stop) Done(samples []float64, spent time.Duration) bool {
	s = s.WithDefaults()
	n := len(samples)
	switch {
	case n < s.Least || n < 1:
		return false
	case n >= s.Most || spent >= s.Budget:
		return true
	}
	return n > 1 && half(samples) <= s.Rel*stat.Mean(samples, nil)
}
