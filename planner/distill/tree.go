package distill

import (
	"math"
	"slices"
)

// tree is a node of a decision tree, with its points.
type tree struct {
	points  []*point
	plan    int     // the best one for all of them
	total   float64 // slowdown of plan, summed
	worst   float64
	ask     feature
	most    int64 // yes: the feature is at most this
	yes, no *tree // nil: a leaf
}

// newTree returns a leaf.
func newTree(points []*point) *tree {
	t := &tree{points: points, total: math.Inf(1)}
	for plan := range points[0].cost {
		total, worst := 0.0, 0.0
		for _, p := range points {
			total, worst = total+p.cost[plan], max(worst, p.cost[plan])
		}
		if total < t.total-1e-12 {
			t.plan, t.total, t.worst = plan, total, worst
		}
	}
	return t
}

// grow splits a leaf by the question of the largest gain, and goes on with both sides.
func (t *tree) grow() {
	if t.total <= float64(len(t.points))+1e-9 {
		return // each point has its fastest plan
	}
	var yes, no *tree
	least := math.Inf(1)
	for ask := range features {
		values := make([]int64, len(t.points))
		for i, p := range t.points {
			values[i] = p.is[ask]
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := range len(values) - 1 {
			var low, high []*point
			for _, p := range t.points {
				if p.is[ask] <= values[i] {
					low = append(low, p)
				} else {
					high = append(high, p)
				}
			}
			y, n := newTree(low), newTree(high)
			if y.total+n.total < least-1e-9 {
				least, yes, no = y.total+n.total, y, n
				t.ask, t.most = ask, threshold(ask, values[i], values[i+1])
			}
		}
	}
	if yes == nil {
		return
	}
	t.yes, t.no = yes, no
	yes.grow()
	no.grow()
}

// threshold returns the threshold between two numbers: of sizes half the way, by the
// logarithm.
func threshold(ask feature, low, high int64) int64 {
	if ask != bytes || low == 0 {
		return low
	}
	middle := int64(math.Sqrt(float64(low) * float64(high)))
	if unit := int64(1) << max(0, int(math.Log2(float64(middle)))-2); middle/unit*unit >= low {
		return middle / unit * unit
	}
	return low
}

// leaves counts the leaves, and sums their slowdown.
func (t *tree) leaves() (n int, total float64) {
	if t.yes == nil {
		return 1, t.total
	}
	n, total = t.yes.leaves()
	m, more := t.no.leaves()
	return n + m, total + more
}

// depth is how many comparisons there are on the longest way.
func (t *tree) depth() int {
	if t.yes == nil {
		return 0
	}
	return 1 + max(t.yes.depth(), t.no.depth())
}

// prune makes leaves of nodes while the bounds allow it, the cheapest one first.
func (t *tree) prune(b Bounds) {
	for {
		var best *tree
		least := math.Inf(1)
		n, total := t.leaves()
		var find func(at *tree)
		find = func(at *tree) {
			if at.yes == nil {
				return
			}
			find(at.yes)
			find(at.no)
			if at.yes.yes != nil || at.no.yes != nil {
				return
			}
			more := at.total - at.yes.total - at.no.total
			fits := (total+more)/float64(len(t.points)) <= b.Mean && (at.worst <= b.Worst || at.worst <= max(at.yes.worst, at.no.worst))
			if (fits || n > b.Most) && more < least {
				best, least = at, more
			}
		}
		find(t)
		if best == nil {
			return
		}
		best.yes, best.no = nil, nil
	}
}

// choose returns the plan for a point.
func (t *tree) choose(p *point) int {
	for t.yes != nil {
		if p.is[t.ask] <= t.most {
			t = t.yes
		} else {
			t = t.no
		}
	}
	return t.plan
}
