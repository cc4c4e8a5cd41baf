package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/tune"
)

// learningWay is a way to learn.
type learningWay struct {
	Name    string
	Options learn.Options
	assumed bool // priors are those of an assumed machine, not of the recorded one
}

// progress is how good the choices were after some time.
type progress struct {
	Seconds  float64 // of measurements
	Slowdown float64 // mean over points with sizes of powers of two
	Odd      float64 // mean over the other points; 0: there are none
	All      float64 // mean over all points
	Worst    float64 // over all points
	Stopped  bool    // it would have stopped by now
}

// slowdowns returns how many times as long as the best plan the chosen one takes, by point. A
// choice below 0 is none.
func (s *recordedSet) slowdowns(choose func(row int) int) (all []float64) {
	for i := range s.Points {
		slow := math.Inf(1)
		if k := choose(i); k >= 0 {
			slow = s.Points[i].NS[k] / s.Points[i].best()
		}
		all = append(all, slow)
	}
	return all
}

// newReplayed returns a learner of a set, without measurements. It chooses for all points, and
// picks from those with powers of two. Others are measured when it asks for odd sizes.
func (s *recordedSet) newReplayed(c learningWay, prices [][]float64) *replayed {
	r := &replayed{waiting: -1, set: s, rng: rand.New(rand.NewPCG(c.Options.Seed, 2)), index: map[arm]int{}}
	var points []learn.Point
	coder := learn.NewCoder(s.parsed, c.Options.Words)
	for i, row := range s.Points {
		usual := labkit.GeometricMean(prices[i]) // for plans without a price
		for k, ns := range row.NS {
			if ns == 0 {
				continue
			}
			p := learn.Point{Choice: i, Features: coder.Features(row.Nodes, row.PerNode, row.Bytes, s.parsed[k]), Aside: row.isOdd()}
			if p.Prior = prices[i][k]; p.Prior == 0 {
				p.Prior = usual
			}
			r.index[arm{i, k}] = len(points)
			points, r.where = append(points, p), append(r.where, arm{i, k})
		}
	}
	r.learner = learn.New(points, c.Options)
	return r
}

// replay measures until the learner stops, all is measured, or most seconds are spent. With places,
// several points are measured at one time. [replayed.check] is next.
func (r *replayed) replay(ctx context.Context, most float64, places *tune.Slots) (steps []progress) {
	s := r.set
	seconds, due := 0.0, true
	for {
		batch := r.batch(places)
		if len(batch) == 0 || ctx.Err() != nil || seconds > most || len(steps) > 0 && steps[len(steps)-1].Stopped {
			return steps
		}
		longest := 0.0
		for _, i := range batch {
			longest = max(longest, s.spent(r.where[i].row, r.where[i].plan))
			r.learner.Learn(i, s.Points[r.where[i].row].NS[r.where[i].plan])
		}
		seconds += longest
		stop := r.learner.Converged()
		for n := range batch {
			due = due || stop || isTurn(len(steps))
			if len(steps) > 0 && (n+1 < len(batch) || !due) {
				last := steps[len(steps)-1]
				last.Seconds = seconds
				steps = append(steps, last)
				continue
			}
			steps, due = append(steps, r.step(progress{Seconds: seconds, Stopped: stop})), false
		}
	}
}

// step fills in how good the choices are.
func (r *replayed) step(st progress) progress {
	r.learner.Train()
	return r.set.sum(r.set.slowdowns(func(row int) int {
		if best := r.learner.Best(row); best >= 0 {
			return r.where[best].plan
		}
		return -1
	}), st)
}

// check measures the choices for sizes of powers of two, as method learn of tierflow tune does in
// the end: as many times, since a slow choice makes place for another plan.
func (r *replayed) check(st progress) progress {
	s := r.set
	for range tune.MostChecks {
		r.learner.Train()
		for row := range s.Points {
			if i, ok := r.learner.Doubt(row); ok {
				st.Seconds += s.spent(row, r.where[i].plan)
				r.learner.Learn(i, s.Points[row].NS[r.where[i].plan])
			}
		}
	}
	return r.step(st)
}

// arm is a plan for a row's request.
type arm struct{ row, plan int }

// replayed is a learner measuring from a set.
type replayed struct {
	set     *recordedSet
	rng     *rand.Rand
	learner *learn.Learner
	where   []arm
	index   map[arm]int
	waiting int // a point without a place beside others; -1: none
}

// batch returns the points to measure next, at one time: one, or as many as there are places for.
func (r *replayed) batch(places *tune.Slots) (all []int) {
	if places == nil {
		if i, ok := r.next(); ok {
			all = append(all, i)
		}
		return all
	}
	places.Clear()
	for {
		if r.waiting < 0 {
			i, ok := r.next()
			if !ok {
				return all
			}
			r.waiting = i
		}
		if ranks := places.Place(tune.Machine{Nodes: r.set.Points[r.where[r.waiting].row].Nodes, PerNode: 1}); ranks == nil {
			return all
		}
		all, r.waiting = append(all, r.waiting), -1
	}
}

// next returns the learner's next point, or one of another size in its place.
func (r *replayed) next() (int, bool) {
	next, ok := r.learner.Next()
	if !ok || !next.Odd {
		return next.At, ok
	}
	of := r.where[next.At]
	row := r.set.near(of.row, of.plan, r.rng, func(row int) bool {
		k, there := r.index[arm{row, of.plan}]
		return there && r.learner.Known(k) == 0
	})
	if row < 0 {
		return next.At, true
	}
	r.learner.Free(next.At)
	return r.index[arm{row, of.plan}], true
}

// isTurn reports whether choices are looked at after so many measurements in
// any case: often at first, then rarely.
func isTurn(n int) bool { return n < 24 || n%(n/12) == 0 }

// near draws a row of the same machine with an odd size from three quarters to one and a half
// times that of a row; −1: none fits.
func (s *recordedSet) near(row, plan int, rng *rand.Rand, fits func(row int) bool) int {
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
func (s *recordedSet) sum(slow []float64, step progress) progress {
	var even, odd []float64
	for i := range slow {
		if s.Points[i].isOdd() {
			odd = append(odd, slow[i])
		} else {
			even = append(even, slow[i])
		}
	}
	step.Slowdown, step.Odd, step.All, step.Worst = mean(even), mean(odd), mean(slow), slices.Max(slow)
	return step
}

func mean(all []float64) (m float64) {
	for _, x := range all {
		m += x / float64(len(all))
	}
	return m
}
