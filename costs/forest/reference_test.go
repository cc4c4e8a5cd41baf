package forest_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// reference is a tree that tries every cut of every feature anew, with the squared errors as
// they are defined: what CART says, and nothing clever.
type reference struct {
	feature     int
	threshold   float64
	value       float64
	left, right *reference // nil: a leaf
}

// rows are examples of a bag; an example may be there more than once.
type rows struct {
	x [][]float64
	y []float64
}

func mean(y []float64) (m float64) {
	for _, v := range y {
		m += v / float64(len(y))
	}
	return m
}

// squares is the sum of squared deviations.
func squares(y []float64) (sum float64) {
	m := mean(y)
	for _, v := range y {
		sum += (v - m) * (v - m)
	}
	return sum
}

// parted returns both sides of a cut.
func (r rows) parted(feature int, threshold float64) (left, right rows) {
	for i, row := range r.x {
		side := &right
		if row[feature] <= threshold {
			side = &left
		}
		side.x, side.y = append(side.x, row), append(side.y, r.y[i])
	}
	return left, right
}

// error returns the squared errors that a cut leaves.
func (r rows) error(feature int, threshold float64) (sum float64) {
	var means, n [2]float64
	for pass := range 2 {
		for i, row := range r.x {
			side := 0
			if row[feature] <= threshold {
				side = 1
			}
			if pass == 0 {
				means[side], n[side] = means[side]+r.y[i], n[side]+1
			} else {
				off := r.y[i] - means[side]/n[side]
				sum += off * off
			}
		}
	}
	return sum
}

// cuts lists all thresholds of a feature.
func (r rows) cuts(feature int) (all []float64) {
	var values []float64
	for _, row := range r.x {
		values = append(values, row[feature])
	}
	slices.Sort(values)
	values = slices.Compact(values)
	for i := 1; i < len(values); i++ {
		all = append(all, (values[i-1]+values[i])/2)
	}
	return all
}

// best returns the cut with the least squared errors. Of equal ones the first feature's counts.
func (r rows) best() (feature int, threshold, left float64, found bool) {
	left = math.Inf(1)
	for k := range r.x[0] {
		for _, c := range r.cuts(k) {
			if e := r.error(k, c); e < left {
				feature, threshold, left, found = k, c, e, true
			}
		}
	}
	return feature, threshold, left, found
}

func (r rows) grow() *reference {
	t := &reference{value: mean(r.y)}
	if slices.Max(r.y) == slices.Min(r.y) {
		return t
	}
	feature, threshold, _, found := r.best()
	if !found {
		return t
	}
	left, right := r.parted(feature, threshold)
	t.feature, t.threshold, t.left, t.right = feature, threshold, left.grow(), right.grow()
	return t
}

func (t *reference) predict(x []float64) float64 {
	for t.left != nil {
		if x[t.feature] <= t.threshold {
			t = t.left
		} else {
			t = t.right
		}
	}
	return t.value
}

// bagged are reference trees of drawn bags.
func bagged(x [][]float64, y []float64, trees int, seed uint64) (all []*reference) {
	rng := rand.New(rand.NewPCG(seed, 99))
	for range trees {
		var bag rows
		for range y {
			i := rng.IntN(len(y))
			bag.x, bag.y = append(bag.x, x[i]), append(bag.y, y[i])
		}
		all = append(all, bag.grow())
	}
	return all
}

// explained is R² of predictions: 1 is all of it.
func explained(predicted, y []float64) float64 {
	wrong := 0.0
	for i, v := range y {
		wrong += (v - predicted[i]) * (v - predicted[i])
	}
	return 1 - wrong/squares(y)
}

// A dataset is a function of some features, drawn with a seed.
type dataset struct {
	name  string
	width int
	of    func(x []float64, rng *rand.Rand) float64
}

// datasets are Friedman's first function, a collective's time over nodes and bytes with two
// algorithms, and a step with noise.
var datasets = []dataset{
	{"friedman", 6, func(x []float64, _ *rand.Rand) float64 {
		return 10*math.Sin(math.Pi*x[0]*x[1]) + 20*(x[2]-.5)*(x[2]-.5) + 10*x[3] + 5*x[4]
	}},
	{"collective", 3, func(x []float64, _ *rand.Rand) float64 {
		nodes, bytes := math.Exp2(6*x[0]), math.Exp2(20*x[1])
		if x[2] < .5 {
			return math.Log2(math.Log2(nodes+1) * (1000 + bytes))
		}
		return math.Log2(nodes*1000 + 2*bytes)
	}},
	{"step", 4, func(x []float64, rng *rand.Rand) float64 {
		v := .1 * rng.NormFloat64()
		if x[1] > .6 {
			v += 3
		}
		return v
	}},
}

// draw returns n examples.
func (d *dataset) draw(n int, rng *rand.Rand) (x [][]float64, y []float64) {
	for range n {
		row := make([]float64, d.width)
		for k := range row {
			row[k] = rng.Float64()
		}
		x, y = append(x, row), append(y, d.of(row, rng))
	}
	return x, y
}

// order returns 0 to n-1 by a key.
func order(n int, key func(i int) float64) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(key(i), key(j)) })
	return all
}
