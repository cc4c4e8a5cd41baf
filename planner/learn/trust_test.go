package learn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/planner/learn"
)

// crowd is one choice of many plans, which take their priors times a factor.
func crowd(n int, factor func(plan int) float64) (points []learn.Point, ns []float64) {
	for k := range n {
		prior := 1000 * (1 + float64(k)/float64(n))
		points = append(points, learn.Point{Features: []float64{2, 1, 10, float64(k % 7), float64(k)}, Prior: prior})
		ns = append(ns, prior*factor(k))
	}
	return points, ns
}

// Errors of priors that follow nothing are not learned: predictions stay near the priors, and the
// choice is not the lowest of many guesses.
func TestTrustInNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	points, ns := crowd(400, func(int) float64 { return math.Exp2(.1 * rng.NormFloat64()) })
	l := learn.New(points, learn.Options{Trees: 30, OddEvery: -1})
	for i := 0; i < 400; i += 10 {
		l.Learn(i, ns[i])
	}
	l.Train()
	corrected := 0.0
	for i, p := range points {
		if l.Known(i) > 0 {
			continue
		}
		off := math.Log2(l.Predict(i) / p.Prior)
		corrected += off * off / 360
		if l.Cautious(i) <= l.Predict(i) {
			t.Fatalf("plan %d: a guess of %v counts as %v; want more", i, l.Predict(i), l.Cautious(i))
		}
	}
	if math.Sqrt(corrected) > .05 {
		t.Errorf("predictions are %.3f from priors that are wrong by .1 at random", math.Sqrt(corrected))
	}
	if best := l.Best(0); ns[best] > 1.25*points[0].Prior {
		t.Errorf("plan %d, which takes %v, is chosen", best, ns[best])
	}
}

// Errors of priors that a word of the plan explains are learned.
func TestTrustInWords(t *testing.T) {
	points, ns := crowd(400, func(k int) float64 { return map[bool]float64{true: .25, false: 1}[k%7 == 3] })
	l := learn.New(points, learn.Options{Trees: 30, OddEvery: -1})
	for i := 0; i < 400; i += 9 {
		l.Learn(i, ns[i])
	}
	l.Train()
	for i, p := range points {
		if share := l.Predict(i) / p.Prior; (i%7 == 3) != (share < .5) {
			t.Errorf("plan %d is predicted to take %.2f times its prior; it takes %v times that", i, share, ns[i]/p.Prior)
		}
	}
}

// Guesses count as slower the further they are from what was measured.
func TestCautiousFarAway(t *testing.T) {
	var points []learn.Point
	rng := rand.New(rand.NewPCG(3, 3))
	for choice := range 20 {
		for plan := range 2 {
			points = append(points, learn.Point{Choice: choice, Features: []float64{2, 1, float64(choice), float64(plan)}, Prior: 1000})
		}
	}
	l := learn.New(points, learn.Options{Trees: 30, OddEvery: -1})
	for i := range 10 {
		l.Learn(i, 1000*math.Exp2(.2*rng.NormFloat64()))
	}
	l.Train()
	near, far := l.Cautious(12)/l.Predict(12), l.Cautious(38)/l.Predict(38)
	if near <= 1 || far < 2*near {
		t.Errorf("a size further a guess counts %.2f times, 14 sizes further %.2f times; want far more", near, far)
	}
}

// A choice is in doubt until its best plan is measured, and then while much is hoped of another one:
// the plan of a choice that was priced too low makes others hope, one that was priced right does not.
func TestDoubt(t *testing.T) {
	for _, wrong := range []float64{1, 3} {
		var points []learn.Point
		for choice := range 12 {
			for plan := range 3 {
				points = append(points, learn.Point{
					Choice: choice, Features: []float64{2, 1, float64(choice), float64(plan)}, Prior: 1000 * (1 + float64(plan)),
				})
			}
		}
		l := learn.New(points, learn.Options{Trees: 30, OddEvery: -1})
		for choice := range 6 { // the first plan takes what it is priced in one half, and three times that in the other
			for plan := range 3 {
				ns := points[3*choice+plan].Prior
				if plan == 0 && choice%2 == 0 {
					ns *= wrong
				}
				l.Learn(3*choice+plan, ns)
			}
		}
		l.Train()
		for choice := range 6 {
			if at, doubts := l.Doubt(choice); doubts {
				t.Errorf("all of choice %d is measured, and point %d is in doubt", choice, at)
			}
		}
		if at, doubts := l.Doubt(11); !doubts || at != l.Best(11) {
			t.Errorf("wrong by %v: nobody measured the best of choice 11, point %d, and %d is in doubt: %v", wrong, l.Best(11), at, doubts)
		}
		l.Learn(33, 1000*wrong)
		l.Train()
		if at, doubts := l.Doubt(11); doubts != (wrong > 1) {
			t.Errorf("wrong by %v: point %d of choice 11 is in doubt: %v", wrong, at, doubts)
		}
	}
}
