package distill

import "math"

// finish makes a grown tree ready to be written: it is pruned, leaves that follow each other with one
// plan are merged, and thresholds between sizes are settled.
func (t *tree) finish(b Bounds) {
	t.prune(b)
	t.merge()
	t.settle()
}

// merge joins leaves of one plan that follow each other by one number. Nothing is decided otherwise.
func (t *tree) merge() {
	if t.yes == nil {
		return
	}
	t.yes.merge()
	t.no.merge()
	for t.no.yes != nil && t.no.ask == t.ask && t.yes.isLeafLike(t.no.yes) { // if ≤ x then P elif ≤ y then P
		t.yes, t.most, t.no = t.yes.joinLeaves(t.no.yes), t.no.most, t.no.no
	}
	for t.yes.yes != nil && t.yes.ask == t.ask && t.no.isLeafLike(t.yes.no) { // if ≤ y then (if ≤ x then … else P) else P
		t.no, t.most, t.yes = t.no.joinLeaves(t.yes.no), t.yes.most, t.yes.yes
	}
	if t.yes.isLeafLike(t.no) {
		*t = *t.yes.joinLeaves(t.no)
	}
}

// isLeafLike reports whether both are leaves with one plan.
func (t *tree) isLeafLike(o *tree) bool { return t.yes == nil && o.yes == nil && t.plan == o.plan }

// joinLeaves returns a leaf of two with one plan.
func (t *tree) joinLeaves(o *tree) *tree {
	return &tree{points: append(t.points[:len(t.points):len(t.points)], o.points...), plan: t.plan, total: t.total + o.total, worst: max(t.worst, o.worst)}
}

// settle moves thresholds between two sizes A and C with different plans. The plan of less time half
// way, at B = (A + C)/2, serves all sizes between (ACCLAiM, section V and figure 9).
// If that is unknown, the threshold stays.
func (t *tree) settle() {
	if t.yes == nil {
		return
	}
	t.yes.settle()
	t.no.settle()
	if t.ask != bytes {
		return
	}
	below, above := t.yes, t.no // the leaves next to the threshold
	for below.yes != nil && below.ask == bytes {
		below = below.no
	}
	for above.yes != nil && above.ask == bytes {
		above = above.yes
	}
	if below.yes != nil || above.yes != nil {
		return // plans depend on the machine, too
	}
	if a, c, gain, known := gainHalfway(below, above); known && gain > 0 {
		t.most = c - 1
	} else if known {
		t.most = a
	}
}

// gainHalfway returns by how much longer the plan of a second leaf takes than that of a first one half way
// between the largest size of the first and the smallest of the second: differences of logarithms, summed
// over machines with both times known. Times between two sizes are on a line, by logarithms.
func gainHalfway(below, above *tree) (a, c int64, gain float64, known bool) {
	a, c = below.points[0].is[bytes], above.points[0].is[bytes]
	for _, p := range below.points {
		a = max(a, p.is[bytes])
	}
	for _, p := range above.points {
		c = min(c, p.is[bytes])
	}
	if a < 1 || a >= c {
		return a, c, 0, false
	}
	share := shareBetween(a, (a+c)/2, c)
	at := func(low, high *point, plan int) (float64, bool) {
		x, y := low.cost[plan]*low.best, high.cost[plan]*high.best
		return (1-share)*math.Log(x) + share*math.Log(y), low.known[plan] && high.known[plan]
	}
	for _, low := range below.points {
		for _, high := range above.points {
			if low.is[bytes] != a || high.is[bytes] != c || !low.isMachineOf(high) {
				continue
			}
			x, one := at(low, high, below.plan)
			y, two := at(low, high, above.plan)
			if one && two {
				gain, known = gain+y-x, true
			}
		}
	}
	return a, c, gain, known
}
