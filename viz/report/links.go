package report

import (
	"slices"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/viz"
)

// linkTable is what passed between nodes in traced calls, a row for each that sends.
type linkTable struct {
	Nodes []string
	Rows  []linkRow
}

type linkRow struct {
	From  string
	Cells []linkCell // by the node that receives
}

// linkCell is one way between nodes.
type linkCell struct {
	MB float64 // sent
	MS float64 // that calls waited for it: of their critical paths
}

// mostNodes bounds the nodes of the table.
const mostNodes = 64

// linksOf sums up messages and the critical paths' waits for them.
func linksOf(j *viz.JobTrace) (t linkTable) {
	for _, node := range j.Nodes {
		if !slices.Contains(t.Nodes, node) && len(t.Nodes) < mostNodes {
			t.Nodes = append(t.Nodes, node)
		}
	}
	for _, node := range t.Nodes {
		t.Rows = append(t.Rows, linkRow{node, make([]linkCell, len(t.Nodes))})
	}
	for i := range j.Calls {
		c := &j.Calls[i]
		for k := range c.Events {
			e := &c.Events[k]
			if peer, bytes, ok := sendOf(e); ok {
				if cell := t.cell(j.Nodes[c.Members[e.Rank]], j.Nodes[c.Members[peer]]); cell != nil {
					cell.MB += float64(bytes) / 1e6
				}
			}
		}
		for _, b := range viz.Attribute(c, j.Nodes) {
			for _, from := range t.Nodes {
				for _, to := range t.Nodes {
					if b.Cause == viz.Wire && b.Where == from+">"+to {
						t.cell(from, to).MS += float64(b.NS) / 1e6
					}
				}
			}
		}
	}
	return t
}

// cell is the way between two nodes; nil: it isn't in the table.
func (t *linkTable) cell(from, to string) *linkCell {
	a, b := slices.Index(t.Nodes, from), slices.Index(t.Nodes, to)
	if a < 0 || b < 0 {
		return nil
	}
	return &t.Rows[a].Cells[b]
}

// sendOf returns to which rank of the communicator a step sends a message, and how long that is.
func sendOf(e *trace.Event) (peer int, bytes int64, ok bool) {
	p, linked := e.Source.(trace.Linked)
	if !linked || e.Step == trace.WholeRun {
		return 0, 0, false
	}
	to, _, outgoing := p.Link(e.Step)
	_, _, kind, _, n := e.Source.Describe(e.Step)
	return int(to), n, to >= 0 && outgoing && kind == "send"
}
