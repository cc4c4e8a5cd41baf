package report

import (
	"slices"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/viz"
)

// linkTable is the traffic between nodes in traced calls, a row for each sender.
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
	MS float64 // of the calls' critical paths, waiting for it
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
			m, outgoing, ok := viz.MessageOf(e)
			if !ok || !outgoing {
				continue
			}
			if cell := t.cell(j.Nodes[c.Members[m.From]], j.Nodes[c.Members[m.To]]); cell != nil {
				cell.MB += float64(sentBytes(e)) / 1e6
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

// sentBytes returns the bytes that a step sends: none if it only notifies.
func sentBytes(e *trace.Event) int64 {
	_, _, kind, _, bytes := e.Source.Describe(e.Step)
	if kind != "send" {
		return 0
	}
	return bytes
}
