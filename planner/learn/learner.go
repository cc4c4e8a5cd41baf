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
	Prior    float64   // what it is thought to take, ns: the forest learns how wrong that is; 0: nobody knows
}

// Next is what to measure next.
type Next struct {
	At   int     // the point
	Odd  bool    // better with a size near its own that is no power of two
	Why  string  // in words
	Sum  float64 // what is hoped to be gained, or how trees differ, over all; it falls while the learner learns
	Left int     // points that nobody has measured
}

// Learner learns what points take. It is not for several goroutines at once.
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

	forest  *forest.Forest // nil: none was trained
	trained int            // examples that the forest has seen
	looked  int            // examples at the last look
	trust   float64        // in what the forest says beside priors, 0 to 1
	wrong   float64        // mean squared error of priors with that, log₂²
	mean    []float64      // by point: log₂ of ns, as predicted or measured
	spread  []float64      // by point: the variance of the forest's mean
	worth   []float64      // by point, see Pick
	queue   []Next         // what to pick before the next look
	near    []int          // points that each forest is asked for; others are asked for from time to time
	sums    []float64      // by look
	least   []float64      // by choice: what its fastest point took, ns; 0: none was measured
	vain    []float64      // by choice: its measurements since the last one that was faster than all before
	far     []float64      // by point: steps to the nearest example, see steps
	picks   int
}

// starts are how many points are drawn before the first look, of each hundred choices and at
// least.
const (
	startChoices = 3
	startLeast   = 8
)

// New returns a learner of points that have learned nothing.
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
	l.least, l.vain, l.far = make([]float64, len(l.by)), make([]float64, len(l.by)), make([]float64, len(points))
	for i := range l.far {
		l.far[i], l.near = math.Inf(1), append(l.near, i)
	}
	l.start()
	return l
}

// start draws the first points. The choices with fewest, middle and most of all features are
// among them, with all points that have a low prior or differ; with many plans there are more.
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

// Learn tells what a point took, ns.
func (l *Learner) Learn(at int, ns float64) {
	if ns > 0 && l.ns[at] == 0 {
		if c := l.points[at].Choice; l.least[c] == 0 || ns < l.least[c] {
			l.least[c], l.vain[c] = ns, 0
		} else {
			l.vain[c]++
		}
		l.ns[at] = ns
		l.Hear(l.points[at].Features, l.points[at].Prior, ns)
	}
}

// Fail tells that a point can't be measured. It is not asked for again.
func (l *Learner) Fail(at int) { l.failed[at] = true }

// Free tells that a point that was asked for is not measured, but something else in its place. It
// may be asked for again.
func (l *Learner) Free(at int) { l.asked[at] = false }

// Hear tells what something took that is no point, such as one of another size.
func (l *Learner) Hear(features []float64, prior, ns float64) {
	l.x, l.y = append(l.x, features), append(l.y, math.Log2(ns)-l.base(prior))
	for i := range l.points {
		l.far[i] = min(l.far[i], steps(features, l.points[i].Features))
	}
}

// steps is how far apart features are: doublings of what is asked for, and words of the plan that
// differ. See [Coder.Features].
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

// base is what a forest's predictions are added to, log₂ of ns.
func (l *Learner) base(prior float64) float64 {
	if l.o.NoPrior || prior <= 0 {
		return 0
	}
	return math.Log2(prior)
}

// Known returns what a point took, ns; 0: nobody knows.
func (l *Learner) Known(at int) float64 { return l.ns[at] }

// Least returns what the fastest measured point of a point's choice took, ns; 0: none was.
func (l *Learner) Least(at int) float64 { return l.least[l.points[at].Choice] }

// Predict returns what a point takes, ns, as measured or as the forest says that was trained last.
// It is 0 for one that can't be measured, and where none was trained.
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

// Best returns the point of a choice that takes least, those that nobody has measured being as
// slow as they may well be: the lowest of many guesses is too low. −1: nothing is known.
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

// Doubt returns what to measure of a choice so that its best point can be relied on: that one, until
// it was measured. Then it is the one that most is hoped of, unless that is less than the paper is content with. False:
// there is no doubt. [Learner.Train] is before.
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

// Next returns what to measure next; false: there is nothing left. It trains if there is something
// new to learn from. What it has asked for before is not asked for again, so that many can be
// measured at one time, unless [Learner.Free] says otherwise.
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
	n.Left = l.left()
	if len(l.sums) > 0 {
		n.Sum = l.sums[len(l.sums)-1]
	}
	return n, true
}

func (l *Learner) isOpen(at int) bool {
	return l.ns[at] == 0 && !l.failed[at] && !l.asked[at] && !l.points[at].Aside
}

func (l *Learner) left() (n int) {
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

// pick returns the point that is worth most.
func (l *Learner) pick() (n Next, ok bool) {
	for {
		for len(l.queue) > 0 {
			n, l.queue = l.queue[0], l.queue[1:]
			if l.isOpen(n.At) {
				return n, true
			}
		}
		if l.left() == 0 || l.o.Pick != AtRandom && len(l.y) == 0 {
			return n, false
		}
		l.look()
		l.line()
	}
}

// Measurements that are made before a new forest is trained: one for so many examples, since more
// change it less, and one for so many choices, since these change each other little.
const (
	together = 20
	several  = 12
)

// line fills the queue: the points that are worth most, one of a choice. There are more of them
// the more examples there are, since one more then changes the forest less.
func (l *Learner) line() {
	var all []int
	for i := range l.points {
		if l.isOpen(i) {
			all = append(all, i)
		}
	}
	l.shuffle(all) // equals in any order
	if l.o.Pick != AtRandom {
		slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(l.pays(j), l.pays(i)) })
	}
	taken := map[int]bool{}
	for _, i := range all {
		if len(l.queue) > max(len(l.y)/together, len(l.by)/several) {
			break
		}
		if !taken[l.points[i].Choice] {
			taken[l.points[i].Choice] = true
			l.queue = append(l.queue, Next{At: i, Why: l.why(i)})
		}
	}
}

// pays is the worth of a measurement. Where time counts, it is by the time that the measurement will take.
func (l *Learner) pays(at int) float64 {
	if l.o.Pick == ByGain && !l.o.CostBlind {
		return l.worth[at] / math.Exp2(l.mean[at])
	}
	return l.worth[at]
}

// calmLeast is how many examples a learner has at least before it thinks that they suffice.
const calmLeast = 24

// Looks that must agree before a learner has converged, and when they do.
const (
	calmLooks  = 4      // of variances
	calmTwice  = 2      // of gains
	calmSpread = 1e-2   // of the largest sum of variances: it changes less from look to look
	doubt      = 3e-2   // hoped to be gained by one more measurement of a choice
	calmGain   = 1.5e-2 // hoped to be gained by one more measurement of each choice: half of what the paper is content with
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
