package forest

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// grower grows the trees of a forest, one after the other.
type grower struct {
	columns [][]float64 // by feature and example
	y       []float64
	sorted  [][]int32 // by feature: all examples, the smallest first

	// Of the growing tree.
	rng    *rand.Rand
	weight []float64 // by example: how often the bag has it
	off    []float64 // by example of a node: weight times how far its value is from their mean
	orders [][]int32 // by feature: the examples of the bag, those of a node together, the smallest first
	left   []int     // by example: 1 if the split sends it left
	right  []int32   // examples on the right, while a node's are parted
	order  []int32   // features as a split looks at them, but for those with one value
}

// sameFeature is by how much values of a feature differ at least to be told apart, as in
// scikit-learn.
const sameFeature = 1e-7

func newGrower(x [][]float64, y []float64) *grower {
	width := len(x[0])
	g := &grower{
		y: y, columns: make([][]float64, width), sorted: make([][]int32, width), orders: make([][]int32, width),
		weight: make([]float64, len(y)), off: make([]float64, len(y)), left: make([]int, len(y)), right: make([]int32, len(y)),
	}
	for k := range width {
		g.columns[k], g.sorted[k] = make([]float64, len(y)), make([]int32, len(y))
		for i, row := range x {
			g.columns[k][i], g.sorted[k][i] = row[k], int32(i)
		}
		slices.SortStableFunc(g.sorted[k], func(i, j int32) int { return cmp.Compare(g.columns[k][i], g.columns[k][j]) })
		if first, last := g.sorted[k][0], g.sorted[k][len(y)-1]; g.columns[k][last] > g.columns[k][first]+sameFeature {
			g.order = append(g.order, int32(k))
		}
	}
	if len(g.order) == 0 {
		g.order = []int32{0}
	}
	return g
}

// grow draws a bag and grows a tree of it. It returns the examples missing in the bag, too.
func (g *grower) grow(rng *rand.Rand) (t tree, unseen []int32) {
	g.rng = rng
	clear(g.weight)
	for range g.y {
		g.weight[rng.IntN(len(g.y))]++
	}
	for _, k := range g.order {
		g.orders[k] = g.orders[k][:0]
		for _, i := range g.sorted[k] {
			if g.weight[i] > 0 {
				g.orders[k] = append(g.orders[k], i)
			}
		}
	}
	for i, n := range g.weight {
		if n == 0 {
			unseen = append(unseen, int32(i))
		}
	}
	type part struct{ at, from, to int }
	size := len(g.y) - len(unseen)
	t = make(tree, 1, 2*size)
	for open := []part{{0, 0, size}}; len(open) > 0; {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		n, middle := g.split(p.from, p.to)
		if middle > p.from {
			n.left = int32(len(t))
			t = append(t, node{}, node{})
			open = append(open, part{int(n.left), p.from, middle}, part{int(n.left) + 1, middle, p.to})
		}
		t[p.at] = n
	}
	return t, unseen
}

// split makes the node of the examples from and to in g.orders, and parts them: left ones end
// before middle. A leaf has none of these.
func (g *grower) split(from, to int) (n node, middle int) {
	all := g.orders[g.order[0]][from:to]
	sum, weight, isFlat := 0.0, 0.0, true
	first := g.y[all[0]]
	for _, i := range all {
		off := g.y[i] - first
		sum, weight, isFlat = sum+float64(g.weight[i]*off), weight+g.weight[i], isFlat && off == 0
	}
	n.value = first + sum/weight
	if isFlat {
		return n, 0
	}
	for _, i := range all {
		g.off[i] = g.weight[i] * (g.y[i] - n.value)
	}
	best := cut{}
	for k := range g.order {
		other := k + g.rng.IntN(len(g.order)-k)
		g.order[k], g.order[other] = g.order[other], g.order[k]
		if !g.isConstant(g.order[k], from, to) {
			g.cut(g.order[k], from, to, weight, &best)
		}
	}
	if best.middle == 0 {
		return n, 0
	}
	n.feature, n.value = best.feature, best.threshold
	g.part(best.feature, from, best.middle, to)
	return n, best.middle
}

func (g *grower) isConstant(feature int32, from, to int) bool {
	order, column := g.orders[feature], g.columns[feature]
	return column[order[to-1]] <= column[order[from]]+sameFeature
}

// cut is where a node may be split. In the zero value there is no cut.
type cut struct {
	feature   int32
	threshold float64
	middle    int     // the first example on the right
	gain      float64 // how far the squared errors fall, but for the node's weight
}

// cut looks for a better cut than the best so far along a feature of examples with a total
// weight. The squared errors fall by L²/l + R²/r, where L and R are the sums of deviations of
// both sides and l and r their weights. As L is −R, that is L²/(l·r) times the total weight.
func (g *grower) cut(feature int32, from, to int, total float64, best *cut) {
	order, column := g.orders[feature][from:to], g.columns[feature]
	sum, weight, low := 0.0, 0.0, column[order[0]]
	for at := 1; at < len(order); at++ {
		i := order[at-1]
		sum, weight = sum+g.off[i], weight+g.weight[i]
		high := column[order[at]]
		if high > low+sameFeature {
			if gain := sum * sum / (weight * (total - weight)); gain > best.gain || best.middle == 0 {
				*best = cut{feature, low/2 + high/2, from + at, gain}
				if best.threshold >= high {
					best.threshold = low
				}
			}
		}
		low = high
	}
}

// part brings the examples of a node in the order of its children, for all features. Both
// places are written each time, since nothing foretells a branch here.
func (g *grower) part(feature int32, from, middle, to int) {
	for at, i := range g.orders[feature][from:to] {
		g.left[i] = 0
		if from+at < middle {
			g.left[i] = 1
		}
	}
	for _, k := range g.order {
		if k == feature {
			continue
		}
		order := g.orders[k][from:to]
		left, right := 0, 0
		for _, i := range order {
			is := g.left[i]
			order[left], g.right[right] = i, i
			left, right = left+is, right+1-is
		}
		copy(order[left:], g.right[:right])
	}
}
