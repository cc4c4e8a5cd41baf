package viz

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// point is a place in a drawing, from its left and its top.
type point struct{ x, y int }

// route returns the Bézier curves of an edge, three points each behind the first. It
// turns in the gaps between columns and goes along rows where no node stands in its way,
// or between two rows.
func (l *layout) route(e Edge) []point {
	c, t := l.column[e.From], l.column[e.To]
	from := point{l.right(c), l.middle[l.row[e.From]]}
	to := point{l.left[t] - arrowTip, l.middle[l.row[e.To]]}
	switch {
	case l.runsBetween(e):
		path := straight(turn(nil, from, point{l.left[c+1], l.tracks[e]}), point{l.right(t - 1), l.tracks[e]})
		return turn(path, point{l.right(t - 1), l.tracks[e]}, to)
	case t == c:
		return l.bow(from, point{l.right(c) + arrowTip, to.y}, l.row[e.To]-l.row[e.From])
	case t < c:
		return turn(nil, point{l.left[c], from.y}, point{l.right(t) + arrowTip, to.y})
	case t == c+1:
		return turn(nil, from, to)
	case l.isFree(l.row[e.To], c, t):
		return straight(turn(nil, from, point{l.left[c+1], to.y}), to)
	}
	return turn(straight([]point{from}, point{l.right(t - 1), from.y}), point{l.right(t - 1), from.y}, to)
}

// runsBetween reports whether nodes stand in the way of an edge, in the rows of both ends.
func (l *layout) runsBetween(e Edge) bool {
	c, t := l.column[e.From], l.column[e.To]
	return t > c+1 && !l.isFree(l.row[e.To], c, t) && !l.isFree(l.row[e.From], c, t)
}

// between returns the height of the gap between rows in which an edge runs: on this side of its end.
func (l *layout) between(e Edge) int {
	from, to := l.middle[l.row[e.From]], l.middle[l.row[e.To]]
	if from > to {
		return to + (l.height+rowGap)/2
	}
	return to - (l.height+rowGap)/2
}

// spreadTracks gives edges tracks of their own in a gap between rows, where they would share a piece of the way. All that
// is below moves down.
func (l *layout) spreadTracks() {
	l.tracks = map[Edge]int{}
	gaps := map[int][]Edge{} // by height
	for _, e := range l.Edges {
		if l.runsBetween(e) {
			gaps[l.between(e)] = append(gaps[l.between(e)], e)
		}
	}
	below := 0 // how far what is below moves
	heights := slices.Sorted(maps.Keys(gaps))
	moves := make([]int, len(heights)+1)
	for i, y := range heights {
		below += trackGap * (l.assignTracks(gaps[y], y+below) - 1)
		moves[i+1] = below
	}
	l.moveDown(func(y int) int {
		above, _ := slices.BinarySearch(heights, y)
		return y + moves[above]
	})
}

// assignTracks gives each edge the first track that is free from its first column on; the first of all is at height
// y. n is how many they need.
func (l *layout) assignTracks(edges []Edge, y int) (n int) {
	slices.SortStableFunc(edges, func(a, b Edge) int { return cmp.Compare(l.column[a.From], l.column[b.From]) })
	var ends []int // by track, the column of the last edge's end
	for _, e := range edges {
		k := slices.IndexFunc(ends, func(end int) bool { return end <= l.column[e.From] })
		if k < 0 {
			k = len(ends)
			ends = append(ends, 0)
		}
		ends[k], l.tracks[e] = l.column[e.To], y+k*trackGap
	}
	return len(ends)
}

// moveDown gives rows and boxes their new heights.
func (l *layout) moveDown(to func(y int) int) {
	for i, y := range l.middle {
		l.middle[i] = to(y)
	}
	for i := range l.boxes {
		b := &l.boxes[i]
		b.top, b.bottom = to(b.top), to(b.bottom)
	}
	l.bottom = to(l.bottom)
}

// isFree reports whether no node stands in a row between two columns.
func (l *layout) isFree(row, from, to int) bool {
	for c := from + 1; c < to; c++ {
		if _, taken := l.taken[[2]int{c, row}]; taken {
			return false
		}
	}
	return true
}

// bow joins two nodes of a column at their right sides, the wider the more rows are between
// them.
func (l *layout) bow(from, to point, rows int) []point {
	x := to.x + min(8+2*max(rows, -rows), columnGap-arrowTip)
	return []point{from, {x, from.y}, {x, to.y}, to}
}

// turn adds a curve that begins and ends level.
func turn(path []point, from, to point) []point {
	if path == nil {
		path = []point{from}
	}
	middle := (from.x + to.x) / 2
	return append(path, point{middle, from.y}, point{middle, to.y}, to)
}

// straight adds a line to a path.
func straight(path []point, to point) []point {
	return append(path, path[len(path)-1], to, to)
}

// writeCurve returns an edge's pos for Graphviz, which counts from the bottom. The arrow's
// tip is where the last curve points.
func (l *layout) writeCurve(path []point) string {
	end := path[len(path)-1]
	tip := point{end.x + arrowTip, end.y}
	if path[len(path)-2].x > end.x {
		tip.x = end.x - arrowTip
	}
	var b strings.Builder
	fmt.Fprintf(&b, "e,%d,%d", tip.x, l.bottom-tip.y)
	for _, p := range path {
		fmt.Fprintf(&b, " %d,%d", p.x, l.bottom-p.y)
	}
	return b.String()
}
