package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/tune"
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
	Stopped  bool    // it would have stopped by now
	Checked  bool    // what would be chosen is measured, too
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

// newReplayed returns a learner of a set that has measured nothing. Choices are made for all points;
// only those with powers of two are looked at to pick, and others are measured where it asks for odd
// sizes.
func (s *Set) newReplayed(c Contest, prices [][]float64) *replayed {
	r := &replayed{held: -1, set: s, rng: rand.New(rand.NewPCG(c.Options.Seed, 2)), index: map[arm]int{}}
	var points []learn.Point
	coder := learn.NewCoder(s.parsed, c.Options.Words)
	for i, row := range s.Points {
		usual := geometricMean(prices[i])
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
// points that have some are measured at one time. [replayed.check] is next.
func (r *replayed) replay(ctx context.Context, most float64, places *tune.Slots) (steps []Step) {
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
			steps, due = append(steps, r.step(Step{Seconds: seconds, Stopped: stop})), false
		}
	}
}

// step fills in how good the choices are.
func (r *replayed) step(st Step) Step {
	r.learner.Train()
	return r.set.sum(r.set.slowdowns(func(row int) int {
		if best := r.learner.Best(row); best >= 0 {
			return r.where[best].plan
		}
		return -1
	}), st)
}

// check measures what would be chosen for sizes that are powers of two, as method learn of tierflow
// tune does in the end: as many times, since what turns out slow makes place for another plan.
func (r *replayed) check(st Step) Step {
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
	st.Checked = true
	return r.step(st)
}

// arm is a plan for a row's request.
type arm struct{ row, plan int }

// replayed is a learner that measures from a set.
type replayed struct {
	set     *Set
	rng     *rand.Rand
	learner *learn.Learner
	where   []arm
	index   map[arm]int
	held    int // the point that did not fit beside others; -1: none
}

// batch returns the points that are measured next, at one time: one, or as many as have places.
func (r *replayed) batch(places *tune.Slots) (all []int) {
	if places == nil {
		if i, ok := r.next(); ok {
			all = append(all, i)
		}
		return all
	}
	places.Clear()
	for {
		if r.held < 0 {
			i, ok := r.next()
			if !ok {
				return all
			}
			r.held = i
		}
		if ranks := places.Place(tune.Machine{Nodes: r.set.Points[r.where[r.held].row].Nodes, PerNode: 1}); ranks == nil {
			return all
		}
		all, r.held = append(all, r.held), -1
	}
}

// next returns the point that the learner asks for, or one of another size in its place.
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
