package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCycle is wrapped by the error of [Graph.Freeze].
var ErrCycle = errors.New("dag: cycle")

// CycleError names one cycle of a graph that should have none: each node has an edge to the
// next, the last one to the first, the smallest id.
type CycleError struct{ Cycle []ID }

// Error lists the ids, at most the first 16.
func (e *CycleError) Error() string {
	const most = 16
	var b strings.Builder
	for _, id := range e.Cycle[:min(len(e.Cycle), most)] {
		fmt.Fprintf(&b, "%d -> ", id)
	}
	if len(e.Cycle) > most {
		fmt.Fprintf(&b, "(%d more) -> ", len(e.Cycle)-most)
	}
	return fmt.Sprintf("%v: %s%d", ErrCycle, b.String(), e.Cycle[0])
}

// Unwrap returns [ErrCycle].
func (e *CycleError) Unwrap() error { return ErrCycle }

// topological returns the order that takes the smallest id among the ready.
func topological(succ, pred rows, indegree []int32) ([]ID, error) {
	order := make([]ID, 0, len(indegree))
	if forward(succ) {
		// The usual graph is appended in an order it can run in. Then node i is
		// ready, and smallest, once all before it are out.
		for id := range ID(len(indegree)) {
			order = append(order, id)
		}
		return order, nil
	}
	left := slices.Clone(indegree)
	var ready minHeap
	for id, d := range left {
		if d == 0 {
			ready.push(ID(id))
		}
	}
	for len(ready) > 0 {
		id := ready.pop()
		order = append(order, id)
		for _, s := range succ.at(id) {
			if left[s]--; left[s] == 0 {
				ready.push(s)
			}
		}
	}
	if len(order) < len(indegree) {
		return nil, &CycleError{Cycle: cycle(pred, left)}
	}
	return order, nil
}

// forward reports whether all edges go from smaller to larger ids.
func forward(succ rows) bool {
	for id := range ID(succ.len()) {
		if s := succ.at(id); len(s) > 0 && s[0] <= id {
			return false
		}
	}
	return true
}

// cycle walks backwards among the nodes that were never ready. Each has a
// predecessor of the same sort, so the walk must come back to a node it has seen.
func cycle(pred rows, left []int32) []ID {
	at := ID(slices.IndexFunc(left, func(d int32) bool { return d > 0 }))
	seen := make([]int32, len(left)) // 1 + index in walk
	var walk []ID
	for seen[at] == 0 {
		walk = append(walk, at)
		seen[at] = int32(len(walk))
		p := pred.at(at)
		at = p[slices.IndexFunc(p, func(id ID) bool { return left[id] > 0 })]
	}
	found := walk[seen[at]-1:]
	slices.Reverse(found)
	first := slices.Index(found, slices.Min(found))
	return append(slices.Clone(found[first:]), found[:first]...)
}

// minHeap is a binary heap of ids. container/heap would box each of them.
type minHeap []ID

func (h *minHeap) push(id ID) {
	a := append(*h, id)
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up] <= a[i] {
			break
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
	*h = a
}

func (h *minHeap) pop() ID {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if right := down + 1; right < last && a[right] < a[down] {
			down = right
		}
		if a[i] <= a[down] {
			break
		}
		a[i], a[down] = a[down], a[i]
		i = down
	}
	*h = a
	return top
}
