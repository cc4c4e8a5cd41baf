package forest

// Split is an inner node of a tree with the examples of its bag that come to it, by weight.
type Split struct {
	Feature   int
	Threshold float64
	Weight    map[int]float64
}

// Grown returns the bags and the splits of a forest's trees, and their leaves as splits with no
// feature (−1), whose threshold is what they predict.
func Grown(x [][]float64, y []float64, o Options, trees int) (bags []map[int]float64, splits [][]Split) {
	f, err := Train(x, y, o)
	if err != nil {
		panic(err)
	}
	g := newGrower(x, y)
	for k := range trees {
		g.grow(source(o, k))
		bag := map[int]float64{}
		for i, w := range g.weight {
			if w > 0 {
				bag[i] = w
			}
		}
		bags, splits = append(bags, bag), append(splits, walk(f.trees[k], 0, x, bag))
	}
	return bags, splits
}

func walk(t tree, at int32, x [][]float64, bag map[int]float64) []Split {
	n := t[at]
	if n.left == 0 {
		return []Split{{-1, n.value, bag}}
	}
	left, right := map[int]float64{}, map[int]float64{}
	for i, w := range bag {
		if x[i][n.feature] <= n.value {
			left[i] = w
		} else {
			right[i] = w
		}
	}
	all := []Split{{int(n.feature), n.value, bag}}
	all = append(all, walk(t, n.left, x, left)...)
	return append(all, walk(t, n.left+1, x, right)...)
}

// PredictedBy returns what tree k predicts.
func (f *Forest) PredictedBy(k int, x []float64) float64 { return f.trees[k].predict(x) }
