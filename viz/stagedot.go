package viz

import (
	"bytes"
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
)

// StageDOT draws the pipeline of one rank for Graphviz as figures 1 and 5 of the
// HAN paper do: a column for each stage, named after its stage task, a row for
// each segment, arrows along the data edges. The error is that of
// [tasks.Graph.Stages].
func StageDOT(g *tasks.Graph) ([]byte, error) {
	stages, err := g.Stages()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	dotHead(&b, append(title(g), fmt.Sprintf("stages of rank %d", g.Rank)))
	// Every node has its place, so that rows are rows: dot would sort them.
	b.WriteString("\tgraph [layout=neato, outputorder=nodesfirst];\n")
	grid := newGrid(g, stages)
	for _, s := range stages {
		grid.column(&b, s)
	}
	for i := range g.Segments {
		fmt.Fprintf(&b, "\t\"#%d\" [%s, pos=%s];\n", i, textOnly, pinAt(0, rowAt(i)))
	}
	for _, s := range stages {
		for _, id := range s.Tasks {
			t := g.Node(id)
			fmt.Fprintf(&b, "\t%s [fillcolor=%q, pos=%s];\n",
				quote(t.String()), colour(t.Kind.Symbol).fill, pinAt(grid.x[s.Index], rowAt(int(t.Segment))))
		}
	}
	for _, e := range g.Edges() {
		if e.Kind == tasks.DataEdge {
			fmt.Fprintf(&b, "\t%s -> %s;\n", quote(g.Node(e.From).String()), quote(g.Node(e.To).String()))
		}
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// Sizes of the grid in hundredths of inches: whole numbers, so that all machines
// round them the same way.
const (
	rowHeight    = 40
	headerHeight = 24
	cellWidth    = 70
	letterWidth  = 8  // of a stage's name, generously
	gap          = 12 // between columns
)

const textOnly = `shape=plaintext, style=""`

func rowAt(i int) int { return -i * rowHeight }

// inches prints hundredths as Graphviz wants them.
func inches(n int) string { return fmt.Sprintf("%.2f", float64(n)/100) }

// pinAt returns a place that a node keeps.
func pinAt(x, y int) string { return fmt.Sprintf(`"%s,%s!"`, inches(x), inches(y)) }

type grid struct {
	*tasks.Graph
	x, width []int // of each column: its middle and its width
}

func newGrid(g *tasks.Graph, stages []tasks.Stage) grid {
	if len(stages) == 0 {
		return grid{}
	}
	n := stages[len(stages)-1].Index + 1
	l := grid{g, make([]int, n), make([]int, n)}
	for _, s := range stages {
		l.width[s.Index] = letterWidth * (len(s.Name) + len("12: "))
	}
	right := cellWidth / 2 // of the rows' names
	for i := range n {
		l.width[i] = max(l.width[i], cellWidth)
		l.x[i] = right + gap + l.width[i]/2
		right += gap + l.width[i]
	}
	return l
}

// column draws the box behind a stage's tasks, headed by its name.
func (l grid) column(b *bytes.Buffer, s tasks.Stage) {
	row := func(id dag.ID) int { return rowAt(int(l.Node(id).Segment)) }
	top, bottom := row(s.Tasks[0]), row(s.Tasks[0])
	for _, id := range s.Tasks {
		top, bottom = max(top, row(id)), min(bottom, row(id))
	}
	top, bottom = top+rowHeight/2+headerHeight, bottom-rowHeight/2
	x := l.x[s.Index]
	fmt.Fprintf(b, "\t\"stage %d\" [label=\"\", color=\"#BBBBBB\", fillcolor=\"#F4F4F4\", width=%s, height=%s, pos=%s];\n",
		s.Index, inches(l.width[s.Index]), inches(top-bottom), pinAt(x, (top+bottom)/2))
	fmt.Fprintf(b, "\t\"%d: %s\" [%s, pos=%s];\n", s.Index, s.Name, textOnly, pinAt(x, top-headerHeight*2/3))
}
