package viz

import "strconv"

// MarkPath marks the nodes that are on a critical path, steps or the tasks of its steps, and the edges
// that it takes from one to the next. If it takes no drawn one, an edge of the kind [Path] is added.
func (d *Drawing) MarkPath(path []PathPiece) {
	at := d.nodesByName()
	last := -1
	for i := range path {
		p := &path[i]
		node, found := at[nodeName{p.Rank, p.Task}]
		if !found {
			node, found = at[nodeName{p.Rank, strconv.Itoa(int(p.Step))}]
		}
		if !found || node == last {
			continue
		}
		d.Nodes[node].IsCritical = true
		if last >= 0 {
			d.markEdge(last, node)
		}
		last = node
	}
	d.sortEdges()
}

// markEdge marks the edges from one node to another, or adds one.
func (d *Drawing) markEdge(from, to int) {
	found := false
	for i := range d.Edges {
		if e := &d.Edges[i]; e.From == from && e.To == to {
			e.IsCritical, found = true, true
		}
	}
	if !found {
		d.Edges = append(d.Edges, Edge{From: from, To: to, Kind: Path, IsCritical: true})
	}
}
