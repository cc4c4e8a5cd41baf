package viz

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// pictures have edges of all kinds: between ranks and levels, and by way of rows of others.
func pictures(t *testing.T) map[string]*Drawing {
	lanes := problem{"16x8", segments(tasks.Allreduce, 5), "shape=lanes,fs=64KiB,w=3,i=nbc/rabenseifner,s=sm"}
	all := must(Tasks(lanes.graphs(t), Options{}))(t)
	all.ConnectTasks(lanes.programs(t))
	return map[string]*Drawing{
		"tasks":     eight.tasks(t, Options{}),
		"one rank":  must(Tasks(eight.graphs(t)[:1], Options{}))(t),
		"all ranks": all,
		"steps":     eight.steps(t, Options{}),
		"scan":      problem{"2x2x2", segments(tasks.Scan, 2), han + ",m=sm"}.steps(t, Options{}),
	}
}

// No edge runs over the name of a rank or a level.
func TestEdgesKeepOffNames(t *testing.T) {
	for name, d := range pictures(t) {
		l := newLayout(d)
		var names []box
		for _, b := range l.boxes {
			b.left, b.right = b.left+labelInside, b.left+labelInside+charWidth*len(b.label)
			b.top, b.bottom = b.top+labelBelow, b.top+labelBelow+labelHeight
			names = append(names, b)
		}
		for _, e := range d.Edges {
			path := l.route(e)
			for i := 0; i+3 < len(path); i += 3 { // a curve stays within its four points
				x, y := span(path[i:i+4], func(p point) int { return p.x }), span(path[i:i+4], func(p point) int { return p.y })
				at := slices.IndexFunc(names, func(b box) bool { return x[0] < b.right && b.left < x[1] && y[0] < b.bottom && b.top < y[1] })
				if at >= 0 {
					t.Fatalf("%s: %s runs over %s", name, d.edgeName(e), names[at].name)
				}
			}
		}
	}
}

// span returns the least and the largest coordinate.
func span(path []point, of func(point) int) [2]int {
	a, b := slices.MinFunc(path, func(a, b point) int { return of(a) - of(b) }), slices.MaxFunc(path, func(a, b point) int { return of(a) - of(b) })
	return [2]int{of(a), of(b)}
}

func (d *Drawing) edgeName(e Edge) string {
	return fmt.Sprintf("%s -> %s (%v)", d.Nodes[e.From].ID(), d.Nodes[e.To].ID(), e.Kind)
}

// Edges that go by way of a gap between rows never lie on each other, and touch no node.
func TestEdgesBetweenRowsAreApart(t *testing.T) {
	for name, d := range pictures(t) {
		l := newLayout(d)
		ways := map[int][][2]int{} // by height, from and to
		owner := map[[3]int]Edge{}
		seen := 0
		for _, e := range d.Edges {
			if !l.runsBetween(e) {
				continue
			}
			seen++
			path := l.route(e)
			at, y := [2]int{path[3].x, path[6].x}, path[3].y
			for _, other := range ways[y] {
				if at[0] < other[1] && other[0] < at[1] {
					t.Errorf("%s: %s lies on %s", name, d.edgeName(e), d.edgeName(owner[[3]int{y, other[0], other[1]}]))
				}
			}
			ways[y], owner[[3]int{y, at[0], at[1]}] = append(ways[y], at), e
			for c := l.column[e.From] + 1; c < l.column[e.To]; c++ {
				for row, middle := range l.middle {
					if _, taken := l.taken[[2]int{c, row}]; taken && max(y-middle, middle-y) <= l.height/2 {
						t.Errorf("%s: %s runs through a node", name, d.edgeName(e))
					}
				}
			}
		}
		if seen == 0 && name != "scan" {
			t.Errorf("%s: no edge runs between rows", name)
		}
	}
}
