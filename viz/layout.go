package viz

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// Sizes of a drawing in points, whole numbers: all machines round them the same way.
const (
	charWidth  = 6  // of a node's text, generously
	textMargin = 14 // beside it, both sides
	lineHeight = 13 // of a line of text
	columnGap  = 44 // in which edges turn
	rowGap     = 16 // in which long edges run
	boxPad     = 8  // between a box and its content
	arrowTip   = 6  // from the end of a curve to what it points at
	trackGap   = 5  // between edges that run beside each other
)

// layout gives every node of a drawing its place: time goes to the right, ranks stand below each
// other in the order given. In a rank each level has its box, and in it the tasks of a kind, or
// the steps of a task, have rows. Names of ranks and levels stand at the left, where no edge runs.
// Graphviz would order ranks by crossings.
type layout struct {
	*Drawing
	column, row []int          // by node; rows count through the whole picture
	left, width []int          // by column
	middle      []int          // by row, from the top
	taken       map[[2]int]int // node at a column and a row
	tracks      map[Edge]int   // from the top, of edges that run between two rows
	height      int            // of a node
	boxes       []box          // of ranks and their levels, inner ones last
	bottom      int
}

// box is a rank's or a level's.
type box struct {
	name                     string // for Graphviz
	label                    string
	level                    byte // its symbol; 0: a rank's
	left, top, right, bottom int
}

func newLayout(d *Drawing) *layout {
	l := &layout{Drawing: d, row: make([]int, len(d.Nodes)), taken: map[[2]int]int{}}
	l.findColumns()
	l.measureColumns()
	for _, p := range d.Ranks {
		l.placeRank(p)
	}
	l.spreadTracks()
	return l
}

// findColumns puts each node behind its predecessors, and the same task of several ranks in one
// column.
func (l *layout) findColumns() {
	l.column = make([]int, len(l.Nodes))
	same := map[string]int{} // by task
	isTask := func(n *Node) bool { return n.Name == n.Label }
	for range len(l.Nodes) + 1 { // more rounds than the longest chain needs
		changed := false
		for i := range l.Nodes {
			if n := &l.Nodes[i]; isTask(n) {
				l.column[i] = max(l.column[i], same[n.Name])
				same[n.Name] = l.column[i]
			}
		}
		for _, e := range l.Edges {
			if at := l.column[e.From] + max(e.Stages, 1); l.leadsRight(e) && at > l.column[e.To] {
				l.column[e.To], changed = at, true
			}
		}
		if !changed {
			return
		}
	}
}

// leadsRight reports whether an edge must go to the right; the others go where they can.
func (l *layout) leadsRight(e Edge) bool {
	switch e.Kind {
	case Stage, Path:
		return false
	case Message:
		return l.Nodes[e.From].Name != l.Nodes[e.From].Label // tasks do it together
	}
	return true
}

// measureColumns makes columns as wide as their widest node.
func (l *layout) measureColumns() {
	lines := 1
	for i := range l.Nodes {
		text := twoLines(l.Nodes[i].Label)
		lines = max(lines, len(text))
		for len(l.width) <= l.column[i] {
			l.width = append(l.width, 2*charWidth+textMargin)
		}
		for _, line := range text {
			l.width[l.column[i]] = max(l.width[l.column[i]], charWidth*len(line)+textMargin)
		}
	}
	l.height = lines*lineHeight + 8
	l.left = make([]int, len(l.width))
	x := 2*boxPad + l.nameWidth()
	for c, w := range l.width {
		l.left[c] = x
		x += w + columnGap
	}
}

// nameWidth returns the width of the widest name beside the tasks. A rank that is alone has its name above them.
func (l *layout) nameWidth() int {
	width := 0
	for _, tier := range l.Tiers {
		width = max(width, charWidth*len(tier.String())+textMargin)
	}
	for _, p := range l.Ranks {
		if len(l.Ranks) > 1 {
			width = max(width, charWidth*len(p.String())+textMargin)
		}
	}
	return width
}

// right returns where a column ends.
func (l *layout) right(c int) int { return l.left[c] + l.width[c] }

// placeRank adds a rank's boxes below those that are there.
func (l *layout) placeRank(p Place) {
	nodes, first := l.of(p.Rank)
	if len(nodes) == 0 {
		return
	}
	end := max(l.right(len(l.width)-1)+columnGap, charWidth*len(p.String())+textMargin)
	outer := box{fmt.Sprintf("rank %d", p.Rank), p.String(), 0, 0, l.bottom, end, 0}
	at := len(l.boxes)
	l.boxes = append(l.boxes, outer)
	l.bottom += lineHeight + boxPad
	for _, tier := range slices.Backward(l.Tiers) {
		l.placeLevel(p, tier, first, nodes)
	}
	l.boxes[at].bottom = l.bottom
	l.bottom += boxPad
}

// lane is the rows of the tasks of a kind, or of the steps of a task.
type lane struct {
	name string
	last [][]int // by row, its nodes from the left
}

// placeLevel adds the box of a level with the rows of its lanes.
func (l *layout) placeLevel(p Place, tier levels.Level, first int, nodes []Node) {
	var ids []int
	for i := range nodes {
		if nodes[i].Level == tier.Symbol {
			ids = append(ids, first+i)
		}
	}
	if len(ids) == 0 {
		return
	}
	end := l.right(l.column[slices.MaxFunc(ids, l.byColumn)]) + boxPad
	b := box{fmt.Sprintf("rank %d %c", p.Rank, tier.Symbol), tier.String(), tier.Symbol, boxPad, l.bottom, end, 0}
	l.bottom += 2 * boxPad
	for _, lane := range l.lanes(ids) {
		for _, row := range lane.last {
			for _, id := range row {
				l.row[id] = len(l.middle)
				l.taken[[2]int{l.column[id], l.row[id]}] = id
			}
			l.middle = append(l.middle, l.bottom+l.height/2)
			l.bottom += l.height + rowGap
		}
	}
	l.bottom += boxPad - rowGap/2
	b.bottom = l.bottom
	l.bottom += boxPad
	l.boxes = append(l.boxes, b)
}

func (l *layout) byColumn(a, b int) int { return cmp.Compare(l.column[a], l.column[b]) }

// lanes sorts the nodes of a level into rows: in a row each stands to the right of the
// one before, behind what it waits for if it can.
func (l *layout) lanes(ids []int) []*lane {
	var all []*lane
	byName := map[string]*lane{}
	slices.SortStableFunc(ids, l.byColumn)
	for _, id := range ids {
		name := laneOf(&l.Nodes[id])
		at := byName[name]
		if at == nil {
			at = &lane{name: name}
			byName[name], all = at, append(all, at)
		}
		l.addTo(at, id)
	}
	slices.SortStableFunc(all, func(a, b *lane) int {
		return cmp.Compare(l.Nodes[a.last[0][0]].Segment, l.Nodes[b.last[0][0]].Segment)
	})
	return all
}

// laneOf returns the kind of a task, or the task of a step.
func laneOf(n *Node) string {
	if n.Name == n.Label {
		return kindOf(n.Label)
	}
	task, _, _ := strings.Cut(n.Label, " ")
	return task
}

// addTo adds a node to the row that ends with one it waits for, or to the first one with
// room, or to a new one.
func (l *layout) addTo(at *lane, id int) {
	room := -1
	for i, row := range at.last {
		end := row[len(row)-1]
		if l.column[end] >= l.column[id] {
			continue
		}
		if l.waits(id, end) {
			at.last[i] = append(row, id)
			return
		}
		if room < 0 {
			room = i
		}
	}
	if room < 0 {
		at.last = append(at.last, []int{id})
		return
	}
	at.last[room] = append(at.last[room], id)
}

// waits reports whether an edge leads from one node to another.
func (l *layout) waits(to, from int) bool {
	first, _ := slices.BinarySearchFunc(l.Edges, to, func(e Edge, to int) int { return cmp.Compare(e.To, to) })
	for _, e := range l.Edges[first:] {
		if e.To != to {
			return false
		}
		if e.From == from {
			return true
		}
	}
	return false
}
