package dag

import (
	"cmp"
	"slices"
)

// Levels returns for every node the length of the longest path that ends there,
// at least 0 (the path of that node alone). weight gives the length of an edge;
// nil means 1 for each.
func (f *Frozen) Levels(weight func(from, to ID) int) []int {
	if weight == nil {
		weight = func(ID, ID) int { return 1 }
	}
	level := make([]int, f.Len())
	for _, id := range f.order {
		for _, p := range f.Pred(id) {
			level[id] = max(level[id], level[p]+weight(p, id))
		}
	}
	return level
}

// Critical returns the path whose nodes cost most together, from first to last,
// and that cost. Costs are at least 0, in any unit; nil means 1 for each node.
// Of equally long paths it takes, from the end, the smallest ids. An empty graph
// has the empty path.
func (f *Frozen) Critical(cost func(ID) float64) (length float64, path []ID) {
	_, end := f.earliest(cost)
	var last ID
	for id := range end {
		if end[id] > end[last] {
			last = ID(id)
		}
	}
	if len(end) == 0 {
		return 0, nil
	}
	path = append(path, last)
	for preds := f.Pred(last); len(preds) > 0; preds = f.Pred(last) {
		last = slices.MaxFunc(preds, func(a, b ID) int { return cmp.Compare(end[a], end[b]) })
		path = append(path, last)
	}
	slices.Reverse(path)
	return end[path[len(path)-1]], path
}

// Width returns how many nodes run at the same time at most if each starts as
// soon as its predecessors have ended and takes as long as its cost, which is at
// least 0; nil means 1 for each node. A node whose cost is 0 takes no time and
// does not count.
func (f *Frozen) Width(cost func(ID) float64) int {
	start, end := f.earliest(cost)
	n := 0
	for i := range start {
		if end[i] > start[i] {
			start[n], end[n] = start[i], end[i]
			n++
		}
	}
	start, end = start[:n], end[:n]
	slices.Sort(start)
	slices.Sort(end)
	width, ended := 0, 0
	for i, t := range start {
		for end[ended] <= t {
			ended++
		}
		width = max(width, i+1-ended)
	}
	return width
}

// earliest returns when each node starts and ends if nothing but its
// predecessors holds it up.
func (f *Frozen) earliest(cost func(ID) float64) (start, end []float64) {
	if cost == nil {
		cost = func(ID) float64 { return 1 }
	}
	start, end = make([]float64, f.Len()), make([]float64, f.Len())
	for _, id := range f.order {
		for _, p := range f.Pred(id) {
			start[id] = max(start[id], end[p])
		}
		end[id] = start[id] + cost(id)
	}
	return start, end
}
