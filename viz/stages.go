package viz

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// StageTable prints the pipeline of one rank: a column per stage, headed by its
// number and the name of its stage task, a row per segment, the segment's task
// kind in the stage it belongs to. "-" heads a stage in which the rank rests.
//
//	stage  0   1     2     3     4
//	       sr  irsr  ibir  sbib  sb
//	#0     sr  ir    ib    sb
//	#1         sr    ir    ib    sb
//
// The error is that of [tasks.Graph.Stages].
func StageTable(g *tasks.Graph) ([]byte, error) {
	stages, err := g.Stages()
	if err != nil {
		return nil, err
	}
	if len(stages) == 0 {
		return []byte("no stages: this rank has no tasks\n"), nil
	}
	columns := stages[len(stages)-1].Index + 1
	rows := make([][]string, 2+g.Segments)
	for i := range rows {
		rows[i] = make([]string, 1+columns)
		rows[i][0] = fmt.Sprintf("#%d", i-2)
	}
	rows[0][0], rows[1][0] = "stage", ""
	for i := range columns {
		rows[0][1+i], rows[1][1+i] = fmt.Sprint(i), "-"
	}
	for _, s := range stages {
		rows[1][1+s.Index] = s.Name
		for _, id := range s.Tasks {
			t := g.Node(id)
			rows[2+t.Segment][1+s.Index] = t.Kind.String()
		}
	}
	return align(rows), nil
}

// align prints rows in columns as wide as their widest cell, two blanks apart,
// none at the ends of lines. Cells are ASCII.
func align(rows [][]string) []byte {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len(cell))
		}
	}
	var b bytes.Buffer
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", width[i], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.Bytes()
}
