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
	for i, p := range points {
		if l.Known(i) > 0 {
			continue
		}
		if off := math.Abs(math.Log2(l.Predict(i) / p.Prior)); off > .05 {
			t.Fatalf("plan %d is predicted to take %v, its prior is %v", i, l.Predict(i), p.Prior)
		}
		if l.Cautious(i) <= l.Predict(i) {
			t.Fatalf("plan %d: a guess of %v counts as %v; want more", i, l.Predict(i), l.Cautious(i))
		}
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
