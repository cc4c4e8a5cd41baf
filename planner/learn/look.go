package learn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs/forest"
)

// Train trains a forest of all examples. Answers are by the last forest. However often it is
// called, the learner's questions are the same.
func (l *Learner) Train() {
	if l.fit() {
		l.askFor(l.watched)
	}
}

// fit trains a forest of all examples, and reports whether there were new ones.
func (l *Learner) fit() bool {
	if len(l.y) == l.trained {
		return false
	}
	f, err := forest.Train(l.x, l.y, forest.Options{Seed: l.o.Seed, Trees: l.o.Trees})
	if err != nil {
		panic(fmt.Sprintf("learn: examples that no forest takes: %v", err)) // points have equal features, times are above 0
	}
	l.forest, l.trained = f, len(l.y)
	l.weigh()
	return true
}

// look finds the worth of points, if there are new examples, and notes the sum for
// [Learner.Converged]. Each eighth look is at all points.
func (l *Learner) look() {
	if len(l.y) == l.lookedAt {
		return
	}
	l.fit()
	l.lookedAt = len(l.y)
	if len(l.sums)%lookAtAll == 0 {
		l.sums = append(l.sums, l.askFor(nil))
		l.narrow()
	} else {
		l.sums = append(l.sums, l.askFor(l.watched))
	}
}

// askFor asks the forest for some points, or all without a list, and finds the worth of all. It returns
// the sum for [Learner.Converged].
func (l *Learner) askFor(some []int) (sum float64) {
	if some == nil {
		for i := range l.points {
			l.ask(i)
		}
	}
	for _, i := range some {
		l.ask(i)
	}
	return l.value()
}

// weigh finds the share of the forest's corrections with the least squared error for examples unseen by
// its trees. The part explained by chance alone is taken off (the estimator of James and Stein 1961, of
// one share): corrections no better than chance would make good priors worse.
func (l *Learner) weigh() {
	unseen := l.forest.Unseen()
	all, both, squares, n := 0.0, 0.0, 0.0, 0.0
	for i, p := range unseen {
		if y := l.y[i]; !math.IsNaN(p) {
			all, both, squares, n = all+float64(y*y), both+float64(y*p), squares+float64(p*p), n+1
		}
	}
	l.trust = 1
	if !l.o.NoPrior && both > 0 {
		share, explained := both/squares, float64(both*both)/squares
		chance := (all - explained) / n
		l.trust = min(1, share*max(0, 1-chance/explained))
	} else if !l.o.NoPrior {
		l.trust = 0
	}
	l.wrong = (all - 2*float64(l.trust*both) + float64(l.trust*l.trust*squares)) / max(1, n)
}

// Of each choice so many points are looked at each time: those of the largest worth, and the seemingly
// fastest. Every eighth look is at all. So a look takes as long with thousands of plans
// as with some dozens.
const (
	lookAtAll = 8
	lookNear  = 24
)

// narrow finds the points to look at each time.
func (l *Learner) narrow() {
	l.watched = l.watched[:0]
	for _, all := range l.by {
		if len(all) <= 2*lookNear {
			l.watched = append(l.watched, all...)
			continue
		}
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(l.worth[j], l.worth[i]) })
		l.watched = append(l.watched, all[:lookNear]...)
		rest := all[lookNear:]
		slices.SortStableFunc(rest, func(i, j int) int { return cmp.Compare(l.mean[i], l.mean[j]) })
		l.watched = append(l.watched, rest[:lookNear]...)
	}
}

// ask asks the forest for a point, unless it was measured.
func (l *Learner) ask(i int) {
	p := &l.points[i]
	if l.ns[i] > 0 {
		l.mean[i], l.spread[i] = math.Log2(l.ns[i]), 0
		return
	}
	l.mean[i], l.spread[i] = l.forest.Both(p.Features)
	l.mean[i] = l.trust*l.mean[i] + l.base(p.Prior)
	l.spread[i] *= l.trust * l.trust
	if l.o.Pick == BySpread && l.o.Bootstrap {
		l.spread[i] = l.forest.AfterBootstrap(p.Features)
	}
}

// value finds the worth of points. It returns the sum for [Learner.Converged].
func (l *Learner) value() (sum float64) {
	if l.o.Pick == ByGain {
		choices := 0.0
		for _, all := range l.by {
			if len(all) > 0 && !l.points[all[0]].Aside {
				sum, choices = sum+l.gains(all), choices+1
			}
		}
		sum /= max(choices, 1)
	} else {
		for i, w := range l.spread {
			l.worth[i] = 0
			if l.isOpen(i) {
				l.worth[i], sum = w, sum+w
			}
		}
	}
	return sum
}

// gains turns the spread of a choice's points into the hoped gain of each, as a share of the time: the
// expected improvement (Jones and others 1998, equation 15) on the best point now. The best point itself
// is measured to find out whether the second best is better. Measurements in vain divide the hope. It
// returns the largest gain.
func (l *Learner) gains(all []int) (most float64) {
	best, second := -1, -1
	for _, i := range all {
		switch {
		case l.failed[i]:
		case best < 0 || l.mean[i] < l.mean[best]:
			best, second = i, best
		case second < 0 || l.mean[i] < l.mean[second]:
			second = i
		}
	}
	for _, i := range all {
		rival := best
		if i == best {
			rival = second
		}
		l.worth[i] = 0
		if !l.isOpen(i) || rival < 0 {
			continue
		}
		if sigma := l.deviation(i); sigma > 0 {
			l.worth[i] = math.Ln2 * improvement(-math.Abs(l.mean[rival]-l.mean[i]), sigma) / (1 + l.sinceBest[l.points[i].Choice])
		}
		most = max(most, l.worth[i])
	}
	return most
}

// deviation is how far a point's prediction may be off, log₂. To the trees' spread comes their
// error for unseen examples. Such an example has others about a step away, so
// further away the error is as many times as large.
func (l *Learner) deviation(at int) float64 {
	trees := float64(l.forest.Trees() - 1)
	far := max(.5, l.distances[at])
	return math.Sqrt(float64(l.spread[at]*trees*trees) + float64(max(0, l.wrong)*far*far))
}

// improvement is the expected improvement E[max(0, Y)] of a normal Y with mean off and standard deviation sigma.
func improvement(off, sigma float64) float64 {
	z := off / sigma
	return off*math.Erfc(-z/math.Sqrt2)/2 + sigma*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}
