package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/planner/learn"
)

// Contest is a way to learn that is replayed.
type Contest struct {
	Name    string
	Options learn.Options
	assumed bool // priors are those of a machine that nobody has measured
}

// Step is how good the choices were after some time.
type Step struct {
	Seconds  float64 // of measurements
	Slowdown float64 // mean over points with sizes that are powers of two
	Odd      float64 // mean over the other points; 0: there are none
	Worst    float64 // over all points
	Sum      float64 // that the learner stops by
	Stopped  bool    // it would have stopped by now
}

// mean is over all points, each counting once.
func (s *Set) slowdowns(choose func(row int) int) (all []float64) {
	for i := range s.Points {
		slow := math.Inf(1)
		if k := choose(i); k >= 0 {
			slow = s.Points[i].NS[k] / s.Points[i].best()
		}
		all = append(all, slow)
	}
	return all
}

// replay lets a learner measure a set until all of it is measured, or most seconds are spent.
// Choices are made for all points; only those with powers of two are looked at to pick, and
// others are measured where it asks for odd sizes.
func (s *Set) replay(ctx context.Context, c Contest, prices [][]float64, most float64) (steps []Step) {
	type at struct{ row, plan int }
	var points []learn.Point
	var where []at
	index := map[at]int{}
	coder := learn.NewCoder(s.parsed, c.Options.Words)
	for i, r := range s.Points {
		usual := geometricMean(prices[i])
		for k, ns := range r.NS {
			if ns == 0 {
				continue
			}
			p := learn.Point{Choice: i, Features: coder.Features(r.Nodes, r.PerNode, r.Bytes, s.parsed[k]), Aside: r.isOdd()}
			if p.Prior = prices[i][k]; p.Prior == 0 {
				p.Prior = usual
			}
			index[at{i, k}] = len(points)
			points, where = append(points, p), append(where, at{i, k})
		}
	}
	rng := rand.New(rand.NewPCG(c.Options.Seed, 2))
	l := learn.New(points, c.Options)
	seconds := 0.0
	for {
		next, ok := l.Next()
		if !ok || ctx.Err() != nil || seconds > most || len(steps) > 0 && steps[len(steps)-1].Stopped {
			return steps
		}
		i := next.At
		if next.Odd {
			if row := s.near(where[i].row, where[i].plan, rng, func(row int) bool {
				k, there := index[at{row, where[i].plan}]
				return there && l.Known(k) == 0
			}); row >= 0 {
				l.Free(i)
				i = index[at{row, where[i].plan}]
			}
		}
		w := where[i]
		seconds += s.spent(w.row, w.plan)
		l.Learn(i, s.Points[w.row].NS[w.plan])
		if stop := l.Converged(); len(steps) > 0 && !stop && !isTurn(len(steps)) {
			last := steps[len(steps)-1]
			last.Seconds = seconds
			steps = append(steps, last)
			continue
		}
		l.Train()
		slow := s.slowdowns(func(row int) int {
			if best := l.Best(row); best >= 0 {
				return where[best].plan
			}
			return -1
		})
		steps = append(steps, s.sum(slow, Step{Seconds: seconds, Sum: next.Sum, Stopped: l.Converged()}))
	}
}

// geometricMean is that of the numbers above 0: what has no price is thought to cost. It is 0 if
// there are none.
func geometricMean(all []float64) float64 {
	sum, n := 0.0, 0.0
	for _, x := range all {
		if x > 0 {
			sum, n = sum+math.Log2(x), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp2(sum / n)
}

// isTurn reports whether choices are looked at after so many measurements, whatever the learner
// has thought of: often at first, then rarely.
func isTurn(n int) bool { return n < 24 || n%(n/12) == 0 }

// near draws a row of the same machine with an odd size from three quarters to one and a half
// times that of a row; −1: there is none that fits.
func (s *Set) near(row, plan int, rng *rand.Rand, fits func(row int) bool) int {
	var all []int
	r := s.Points[row]
	for i, o := range s.Points {
		if o.isOdd() && o.Nodes == r.Nodes && o.PerNode == r.PerNode && 4*o.Bytes >= 3*r.Bytes && 2*o.Bytes < 3*r.Bytes && o.NS[plan] > 0 && fits(i) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return all[rng.IntN(len(all))]
}

// sum fills in a step's means.
func (s *Set) sum(slow []float64, step Step) Step {
	var even, odd []float64
	for i := range slow {
		if s.Points[i].isOdd() {
			odd = append(odd, slow[i])
		} else {
			even = append(even, slow[i])
		}
	}
	step.Slowdown, step.Odd, step.Worst = mean(even), mean(odd), slices.Max(slow)
	return step
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}

// all is the mean slowdown over all points of a step.
func (s *Set) overall(step Step) float64 {
	odd := 0
	for i := range s.Points {
		if s.Points[i].isOdd() {
			odd++
		}
	}
	n := float64(len(s.Points))
	return (step.Slowdown*(n-float64(odd)) + step.Odd*float64(odd)) / n
}
