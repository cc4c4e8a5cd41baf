package learn

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tierflow/tierflow/costs/forest"
)

// Point is a plan for a request on a machine.
type Point struct {
	Choice   int       // points of one choice compete; from 0 on
	Features []float64 // as many for all points, see [Coder.Features]; the first three are equal for all of a choice
	Aside    bool      // it is only predicted, never asked for
	Prior    float64   // its expected time, ns: the forest learns the error; 0: unknown
}

// Next is the next measurement.
type Next struct {
	At   int     // the point
	Odd  bool    // better with a size near its own, but no power of two
	Why  string  // in words
	Sum  float64 // hoped gains, or the spread of trees, over all; it falls while the learner learns
	Left int     // points without a measurement
}

// Learner learns the times of points. It is not for several goroutines at once.
type Learner struct {
	o      Options
	points []Point
	by     [][]int // points by choice
	ns     []float64
	failed []bool
	asked  []bool // asked for, and neither measured nor given back
	x      [][]float64
	y      []float64
	rng    *rand.Rand
	starts []int

	forest    *forest.Forest // nil: none was trained
	trained   int            // examples of the forest
	lookedAt  int            // examples at the last look
	trust     float64        // in the forest's corrections of priors, 0 to 1
	wrong     float64        // mean squared error of corrected priors, log₂²
	mean      []float64      // by point: log₂ of ns, as predicted or measured
	spread    []float64      // by point: the variance of the forest's mean
	worth     []float64      // by point, see Pick
	queue     []Next         // to be picked before the next look
	watched   []int          // points for each look; others have a look from time to time
	sums      []float64      // by look
	least     []float64      // by choice: time of its fastest point, ns; 0: none was measured
	sinceBest []float64      // by choice: its measurements since the fastest one
	distances []float64      // by point: steps to the nearest example, see steps
	picks     int
}

// Points before the first look: of so many choices, and so many of each.
const (
	startChoices = 3
	startLeast   = 8
)

// New returns a learner of points without examples.
func New(points []Point, o Options) *Learner {
	if o.OddEvery == 0 {
		o.OddEvery = 5
	}
	l := &Learner{
		o: o, points: points, ns: make([]float64, len(points)), failed: make([]bool, len(points)), asked: make([]bool, len(points)),
		mean: make([]float64, len(points)), worth: make([]float64, len(points)),
		spread: make([]float64, len(points)), rng: rand.New(rand.NewPCG(o.Seed, 1)),
	}
	for i, p := range points {
		for len(l.by) <= p.Choice {
			l.by = append(l.by, nil)
		}
		l.by[p.Choice] = append(l.by[p.Choice], i)
	}
	l.least, l.sinceBest, l.distances = make([]float64, len(l.by)), make([]float64, len(l.by)), make([]float64, len(points))
	for i := range l.distances {
		l.distances[i], l.watched = math.Inf(1), append(l.watched, i)
	}
	l.start()
	return l
}

// start draws the first points: those of the first choice and of the ones a third and two thirds up, all
// or [startLeast] of each.
func (l *Learner) start() {
	var open [][]int
	for _, all := range l.by {
		if len(all) > 0 && !l.points[all[0]].Aside {
			open = append(open, all)
		}
	}
	for k := range min(startChoices, len(open)) {
		all := slices.Clone(open[k*(len(open)-1)/startChoices])
		if len(all) > startLeast {
			l.shuffle(all)
			all = all[:startLeast]
		}
		l.starts = append(l.starts, all...)
	}
	slices.Sort(l.starts)
	l.starts = slices.Compact(l.starts)
	l.shuffle(l.starts)
}

func (l *Learner) shuffle(all []int) {
	l.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// Learn tells the learner a point's time, ns.
func (l *Learner) Learn(at int, ns float64) {
	if ns > 0 && l.ns[at] == 0 {
		if c := l.points[at].Choice; l.least[c] == 0 || ns < l.least[c] {
			l.least[c], l.sinceBest[c] = ns, 0
		} else {
			l.sinceBest[c]++
		}
		l.ns[at] = ns
		l.Hear(l.points[at].Features, l.points[at].Prior, ns)
	}
}

// Fail tells the learner of a point beyond measurement. It is not asked for again.
func (l *Learner) Fail(at int) { l.failed[at] = true }

// Free tells the learner of another measurement in place of a point. The point may be asked for
// again.
func (l *Learner) Free(at int) { l.asked[at] = false }

// Hear tells the learner the time of something beside its points, such as one of another size.
func (l *Learner) Hear(features []float64, prior, ns float64) {
	l.x, l.y = append(l.x, features), append(l.y, math.Log2(ns)-l.base(prior))
	for i := range l.points {
		l.distances[i] = min(l.distances[i], steps(features, l.points[i].Features))
	}
}

// steps returns the distance of features: doublings of the request, and different words of the
// plan. See [Coder.Features].
func steps(a, b []float64) (sum float64) {
	for k := range a {
		if off := math.Abs(a[k] - b[k]); k < asked {
			sum += off
		} else if off > 0 {
			sum++
		}
	}
	return sum
}

// base is the summand for a forest's predictions, log₂ of ns.
func (l *Learner) base(prior float64) float64 {
	if l.o.NoPrior || prior <= 0 {
		return 0
	}
	return math.Log2(prior)
}

// Known returns the measured time of a point, ns; 0: there is none.
func (l *Learner) Known(at int) float64 { return l.ns[at] }

// Least returns the time of the fastest measured point of a point's choice, ns; 0: none was.
func (l *Learner) Least(at int) float64 { return l.least[l.points[at].Choice] }

// Predict returns the time of a point, ns, measured or by the last forest. It is 0 for a point that
// can't be measured, and without a forest.
func (l *Learner) Predict(at int) float64 {
	switch {
	case l.failed[at]:
		return 0
	case l.ns[at] > 0:
		return l.ns[at]
	case l.forest == nil:
		return 0
	}
	return math.Exp2(l.mean[at])
}

// Best returns the fastest point of a choice. A point without a measurement counts as slow as it may
// well be: the lowest of many guesses is too low. −1: nothing is known.
func (l *Learner) Best(choice int) int {
	best, least := -1, math.Inf(1)
	for _, i := range l.by[choice] {
		ns := l.Predict(i)
		if ns > 0 && l.ns[i] == 0 && l.o.Pick == ByGain {
			ns *= math.Exp2(l.deviation(i))
		}
		if ns > 0 && ns < least {
			best, least = i, ns
		}
	}
	return best
}

// Doubt returns the point of a choice to measure before its best one can be relied on: the best one
// itself, until it was measured. Then it is the one with the largest hoped gain, if that is more than the
// paper's bound. False: there is no doubt. Call [Learner.Train] before.
func (l *Learner) Doubt(choice int) (at int, ok bool) {
	at = l.Best(choice)
	if at < 0 || l.o.Pick != ByGain || l.ns[at] == 0 {
		return at, at >= 0 && l.isOpen(at)
	}
	for _, i := range l.by[choice] {
		if l.isOpen(i) && l.worth[i] > l.worth[at] {
			at = i
		}
	}
	return at, l.worth[at] > doubt
}

// Next returns the next measurement; false: there is nothing left. It trains if there are new
// examples. No point is asked for twice, unless [Learner.Free] gives it back: so several can be
// measured at one time.
func (l *Learner) Next() (n Next, ok bool) {
	l.picks++
	n.Why = "start"
	for len(l.starts) > 0 && !ok {
		n.At, l.starts = l.starts[0], l.starts[1:]
		ok = l.isOpen(n.At)
	}
	if !ok {
		if n, ok = l.pick(); !ok {
			return n, false
		}
	}
	l.asked[n.At] = true
	n.Odd = l.o.OddEvery > 0 && l.picks%l.o.OddEvery == 0
	n.Left = l.remaining()
	if len(l.sums) > 0 {
		n.Sum = l.sums[len(l.sums)-1]
	}
	return n, true
}

func (l *Learner) isOpen(at int) bool {
	return l.ns[at] == 0 && !l.failed[at] && !l.asked[at] && !l.points[at].Aside
}

func (l *Learner) remaining() (n int) {
	for i := range l.points {
		if l.isOpen(i) {
			n++
		}
	}
	return n
}

// why says in words why a point is picked.
func (l *Learner) why(at int) string {
	switch l.o.Pick {
	case AtRandom:
		return "drawn"
	case BySpread:
		return fmt.Sprintf("variance %.2g", l.worth[at])
	}
	return fmt.Sprintf("±%.0f%%", 100*(math.Exp2(l.deviation(at))-1))
}

// pick returns the point of the largest worth.
func (l *Learner) pick() (n Next, ok bool) {
	for {
		for len(l.queue) > 0 {
			n, l.queue = l.queue[0], l.queue[1:]
			if l.isOpen(n.At) {
				return n, true
			}
		}
		if l.remaining() == 0 || l.o.Pick != AtRandom && len(l.y) == 0 {
			return n, false
		}
		l.look()
		l.fillQueue()
	}
}

// Measurements before a new forest is trained: one for so many examples, since more
// change it less, and one for so many choices, since these change each other little.
const (
	examplesPerForest = 20
	choicesPerForest  = 12
)

// fillQueue fills the queue: the points of the largest worth, one of a choice. With more examples they are
// more, since one more then changes the forest less.
func (l *Learner) fillQueue() {
	var all []int
	for i := range l.points {
		if l.isOpen(i) {
			all = append(all, i)
		}
	}
	l.shuffle(all) // equals in any order
	if l.o.Pick != AtRandom {
		slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(l.worthByTime(j), l.worthByTime(i)) })
	}
	taken := map[int]bool{}
	for _, i := range all {
		if len(l.queue) > max(len(l.y)/examplesPerForest, len(l.by)/choicesPerForest) {
			break
		}
		if !taken[l.points[i].Choice] {
			taken[l.points[i].Choice] = true
			l.queue = append(l.queue, Next{At: i, Why: l.why(i)})
		}
	}
}

// worthByTime is the worth of a measurement, divided by its expected time if time counts.
func (l *Learner) worthByTime(at int) float64 {
	if l.o.Pick == ByGain && !l.o.CostBlind {
		return l.worth[at] / math.Exp2(l.mean[at])
	}
	return l.worth[at]
}

// calmLeast is the number of examples of a converged learner at least.
const calmLeast = 24

// Looks for a converged learner, and the bounds for them.
const (
	calmLooks  = 4      // of variances
	calmTwice  = 2      // of gains
	calmSpread = 1e-2   // of the largest sum of variances: it changes less from look to look
	doubt      = 3e-2   // hoped to be gained by one more measurement of a choice
	calmGain   = 1.5e-2 // hoped to be gained by one more measurement of each choice: half of the paper's bound
)

// Converged reports whether it is not worth to measure more. Twice in a row nearly nothing was hoped
// to be gained, or four times the sum of variances has changed by less than a hundredth of its largest
// value (ACCLAiM, section IV-C).
func (l *Learner) Converged() bool {
	n := len(l.sums)
	switch {
	case l.o.Pick == AtRandom || len(l.y) < min(calmLeast, len(l.points)/2):
		return false
	case l.o.Pick == ByGain:
		return n >= calmTwice && slices.Max(l.sums[n-calmTwice:]) < calmGain
	case n <= calmLooks:
		return false
	}
	for k := n - calmLooks; k < n; k++ {
		if math.Abs(l.sums[k]-l.sums[k-1]) >= calmSpread*slices.Max(l.sums) {
			return false
		}
	}
	return true
}
