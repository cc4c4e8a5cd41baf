package forest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Options are for training a forest. Zero fields have defaults.
type Options struct {
	Trees int    // 0: 100
	Seed  uint64 // of all draws
}

// Forest is a trained forest. It is never changed, so it is safe for concurrent use.
type Forest struct {
	trees    []tree
	unseen   [][]int32 // by tree: the examples its bag lacks
	spared   []float64 // by example: how many trees have not seen it
	foreseen []float64 // see Unseen
}

// tree is its nodes. The first is the root, and the right child follows the left one.
type tree []node

// node is a question, or a leaf if left is 0.
type node struct {
	value   float64 // examples up to it go left; of a leaf: its prediction
	feature int32
	left    int32
}

// Train learns y from the rows of x. Each tree sees a bag: as many examples as there are, drawn
// with repetition. It is split where the variance falls most, until examples of a leaf are equal
// (CART). It is an error if there are no examples, rows have different lengths, or a number is
// not finite.
func Train(x [][]float64, y []float64, o Options) (*Forest, error) {
	if err := check(x, y, o); err != nil {
		return nil, err
	}
	if o.Trees == 0 {
		o.Trees = 100
	}
	f := &Forest{spared: make([]float64, len(y))}
	g := newGrower(x, y)
	for k := range o.Trees {
		one, unseen := g.grow(source(o, k))
		f.trees, f.unseen = append(f.trees, one), append(f.unseen, unseen)
		for _, i := range unseen {
			f.spared[i]++
		}
	}
	f.foreseen = f.foresee(x)
	return f, nil
}

// Unseen returns the prediction of each example by the trees that have not seen it (Breiman 2001,
// section 3.1); NaN: all have.
func (f *Forest) Unseen() []float64 { return f.foreseen }

// foresee lets each example be predicted by the trees that have not seen it.
func (f *Forest) foresee(x [][]float64) []float64 {
	sums := make([]float64, len(x))
	for k, t := range f.trees {
		for _, i := range f.unseen[k] {
			sums[i] += t.predict(x[i])
		}
	}
	for i, trees := range f.spared {
		sums[i] /= trees // without trees: not a number
	}
	return sums
}

// Trees returns how many there are.
func (f *Forest) Trees() int { return len(f.trees) }

// source returns the random numbers of tree k. No other tree changes them.
func source(o Options, k int) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, uint64(k))) }

// check returns an error if nothing can be learned from examples.
func check(x [][]float64, y []float64, o Options) error {
	switch {
	case len(x) == 0 || len(x) != len(y):
		return fmt.Errorf("forest: %d rows and %d values; allowed are as many of both, 1 or more", len(x), len(y))
	case o.Trees < 0:
		return fmt.Errorf("forest: %d trees; allowed are numbers from 0", o.Trees)
	}
	for i, row := range x {
		if len(row) != len(x[0]) || len(row) == 0 {
			return fmt.Errorf("forest: row %d has %d features, row 0 %d; allowed are as many in all, 1 or more", i, len(row), len(x[0]))
		}
		if k := slices.IndexFunc(row, isEndless); k >= 0 {
			return fmt.Errorf("forest: row %d, feature %d is %v; allowed are finite numbers", i, k, row[k])
		}
		if isEndless(y[i]) {
			return fmt.Errorf("forest: value %d is %v; allowed are finite numbers", i, y[i])
		}
	}
	return nil
}

func isEndless(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

// Predict returns the mean of the trees' predictions for a row.
func (f *Forest) Predict(x []float64) float64 {
	mean, _ := f.Both(x)
	return mean
}

// Spread returns how unsure the trees are of a row: the variance of their mean by the
// jackknife over trees (ACCLAiM, section IV-A).
func (f *Forest) Spread(x []float64) float64 {
	_, spread := f.Both(x)
	return spread
}

// Both returns [Forest.Predict] and [Forest.Spread] of a row, for one walk through the trees.
//
// Leaving out tree i moves the mean of n trees by (mean − pᵢ)/(n−1). So the paper's sum over
// trees is the sample variance of their predictions divided by (n−1)², and needs no resampling.
func (f *Forest) Both(x []float64) (mean, spread float64) {
	sum, squares := 0.0, 0.0
	first := f.trees[0].predict(x)
	for _, t := range f.trees {
		off := t.predict(x) - first
		sum, squares = sum+off, squares+float64(off*off)
	}
	n := float64(len(f.trees))
	if n < 2 {
		return first, 0
	}
	return first + sum/n, max(0, squares-float64(sum*sum)/n) / math.Pow(n-1, 3)
}

// AfterBootstrap returns the variance of the forest's mean for a row over other possible examples:
// the jackknife after bootstrap, less the chance of so few trees (Wager, Hastie and Efron 2014,
// equations 5 and 7). Leaving out an example leaves the trees that have not seen it.
func (f *Forest) AfterBootstrap(x []float64) float64 {
	without := make([]float64, len(f.spared))
	predicted := make([]float64, len(f.trees))
	mean, trees, n := 0.0, float64(len(f.trees)), float64(len(f.spared))
	for k, t := range f.trees {
		predicted[k] = t.predict(x)
		mean += predicted[k] / trees
		for _, i := range f.unseen[k] {
			without[i] += predicted[k]
		}
	}
	sum, chance := 0.0, 0.0
	for i, trees := range f.spared {
		if trees > 0 {
			off := without[i]/trees - mean
			sum += float64(off * off)
		}
	}
	for _, p := range predicted {
		chance += float64((p - mean) * (p - mean))
	}
	return max(0, float64((n-1)/n*sum)-float64((math.E-1)*n/(trees*trees)*chance))
}

// predict returns the value of a row's leaf.
func (t tree) predict(x []float64) float64 {
	n := t[0]
	for n.left != 0 {
		if x[n.feature] <= n.value {
			n = t[n.left]
		} else {
			n = t[n.left+1]
		}
	}
	return n.value
}
