package viz

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Text lists the drawing: under each rank one line a node. A line has the node's name, its label
// if it says more, its level, its operands and its predecessors. A star marks nodes on the
// critical path. Predecessors stand without their kind if it is the usual one (data, after),
// those of other ranks with their rank. A star before one marks the path's way from there.
func (d *Drawing) Text() []byte {
	var b bytes.Buffer
	for _, line := range d.Title {
		b.WriteString(line + "\n")
	}
	edges := d.Edges // sorted by To, as nodes are
	for _, p := range d.Ranks {
		if d.isOver(0) {
			break
		}
		nodes, first := d.of(p.Rank)
		b.WriteString("\n" + p.String())
		if len(nodes) == 0 {
			b.WriteString(": nothing")
		}
		b.WriteByte('\n')
		rows := make([][]string, len(nodes))
		for i := range nodes {
			n := &nodes[i]
			label := n.Label
			if label == n.Name {
				label = ""
			}
			var after []string
			for len(edges) > 0 && edges[0].To == first+i {
				after = append(after, d.predecessor(edges[0]))
				edges = edges[1:]
			}
			mark := " "
			if n.IsCritical {
				mark = "*"
			}
			rows[i] = []string{mark, n.Name, label, string(rune(n.Level)), n.Detail, waitsFor(after)}
		}
		b.Write(align(dropEmpty(rows)))
	}
	return b.Bytes()
}

func waitsFor(after []string) string {
	if after == nil {
		return ""
	}
	return "after " + strings.Join(after, ", ")
}

func (d *Drawing) predecessor(e Edge) string {
	from := &d.Nodes[e.From]
	mark := ""
	if e.IsCritical {
		mark = "*"
	}
	switch {
	case e.Kind == Data || e.Kind == After:
		return mark + from.Name
	case from.Rank == d.Nodes[e.To].Rank:
		return fmt.Sprintf("%s%s (%v)", mark, from.Name, e.Kind)
	}
	return mark + from.ID()
}

// dropEmpty removes the columns in which no row has anything.
func dropEmpty(rows [][]string) [][]string {
	if len(rows) == 0 {
		return rows
	}
	var used []int
	for i := range rows[0] {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			used = append(used, i)
		}
	}
	for n, row := range rows {
		kept := make([]string, len(used))
		for i, at := range used {
			kept[i] = row[at]
		}
		rows[n] = kept
	}
	return rows
}
