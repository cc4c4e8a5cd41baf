package viz

import (
	"fmt"
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
	case t == c:
		return l.bow(from, point{l.right(c) + arrowTip, to.y}, l.row[e.To]-l.row[e.From])
	case t < c:
		return turn(nil, point{l.left[c], from.y}, point{l.right(t) + arrowTip, to.y})
	case t == c+1:
		return turn(nil, from, to)
	case l.isFree(l.row[e.To], c, t):
		return straight(turn(nil, from, point{l.left[c+1], to.y}), to)
	case l.isFree(l.row[e.From], c, t):
		return turn(straight([]point{from}, point{l.right(t - 1), from.y}), point{l.right(t - 1), from.y}, to)
	}
	between := to.y - (l.height+rowGap)/2
	if from.y > to.y {
		between = to.y + (l.height+rowGap)/2
	}
	path := turn(nil, from, point{l.left[c+1], between})
	path = straight(path, point{l.right(t - 1), between})
	return turn(path, point{l.right(t - 1), between}, to)
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
