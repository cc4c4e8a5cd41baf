package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs/sim"
)

// Scripts with an answer known by heart.
func TestScript(t *testing.T) {
	call := func(time, busy sim.Time) sim.Action { return sim.Action{Start: &sim.Call{Time: time, Busy: busy}} }
	work := func(time sim.Time) sim.Action { return sim.Action{Compute: time} }
	for _, test := range []struct {
		name    string
		actions []sim.Action
		spare   bool
		time    sim.Time
		hidden  float64
		ended   []sim.Time
	}{
		{"nothing", nil, false, 0, 1, nil},
		{"only work", []sim.Action{work(10)}, false, 10, 1, nil},
		{"nothing hides the last", []sim.Action{work(10), call(4, 0)}, false, 14, 0, []sim.Time{14}},
		{"all hidden", []sim.Action{work(10), call(4, 0), work(10)}, false, 20, 1, []sim.Time{14}},
		{"the second waits for the first", []sim.Action{call(8, 0), work(2), call(8, 0), work(2)}, false, 16, 0.25, []sim.Time{8, 16}},
		{"half of the processor", []sim.Action{call(8, 4), work(10)}, false, 14, 0.5, []sim.Time{8}},
		{"which is spare", []sim.Action{call(8, 4), work(10)}, true, 10, 1, []sim.Time{8}},
		{"all of the processor", []sim.Action{call(8, 8), work(10)}, false, 18, 0, []sim.Time{8}},
		{"a call of no time", []sim.Action{call(0, 0), work(10), call(0, 0)}, false, 10, 1, []sim.Time{0, 10}},
	} {
		s := sim.Script{Actions: test.actions, Spare: test.spare}
		o := s.Run()
		if o.Time != test.time || math.Abs(o.Hidden()-test.hidden) > 1e-12 || !slices.Equal(o.Ended, test.ended) {
			t.Errorf("%s: %d, hidden %v, ended %v; want %d, %v, %v", test.name, o.Time, o.Hidden(), o.Ended, test.time, test.hidden, test.ended)
		}
	}
}

// Whatever the script, it takes at least its work and its calls' time, and no more than both.
func TestScriptBounds(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var s sim.Script
		s.Spare = draw.IntN(2) == 0
		for range 1 + draw.IntN(12) {
			if draw.IntN(2) == 0 {
				s.Actions = append(s.Actions, sim.Action{Compute: sim.Time(draw.Int64N(1e13))})
				continue
			}
			c := &sim.Call{Time: sim.Time(draw.Int64N(1e13))}
			c.Busy = sim.Time(draw.Int64N(int64(c.Time) + 1))
			s.Actions = append(s.Actions, sim.Action{Start: c})
		}
		o := s.Run()
		least := max(o.Compute, o.Calls)
		slack := sim.Time(len(s.Actions)) // of rounding
		if o.Time < least-slack || o.Time > o.Compute+o.Calls+slack || o.LastComputed() > o.Time || !slices.IsSorted(o.Computed) || len(o.Begun) != len(o.Ended) {
			t.Fatalf("%+v: %+v", s, o)
		}
		for k := range o.Ended {
			if k > 0 && o.Begun[k] < o.Ended[k-1] || o.Ended[k] < o.Begun[k] {
				t.Fatalf("%+v: %+v", s, o)
			}
		}
	}
}
