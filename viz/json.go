package viz

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonNode and jsonEdge fix names and order of the fields.
type jsonNode struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Rank    int32  `json:"rank"`
	Level   string `json:"level"`
	Segment int    `json:"segment"`
	Detail  string `json:"detail"`
	// Critical is left out unless the node is on the critical path.
	Critical bool `json:"critical,omitempty"`
}

type jsonEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"`
	// Critical is left out unless the critical path goes this way.
	Critical bool `json:"critical,omitempty"`
}

// JSON writes the drawing as one object, a node or an edge a line, in the order
// of [Drawing]:
//
//	{"title": [lines],
//	 "nodes": [{"id":"r0.ib#3","label":"ib#3","rank":0,"level":"i","segment":3,"detail":"…"}, …],
//	 "edges": [{"from":"r0.sr#0","to":"r0.ir#0","kind":"data"}, …]}
//
// An edge's kind is a name of [EdgeKind]; its ends are ids of nodes.
func (d *Drawing) JSON() []byte {
	nodes, edges := make([]any, len(d.Nodes)), make([]any, len(d.Edges))
	for i := range d.Nodes {
		if d.isOver(i) {
			return nil
		}
		n := &d.Nodes[i]
		nodes[i] = jsonNode{n.ID(), n.Label, int32(n.Rank), string(rune(n.Level)), n.Segment, n.Detail, n.IsCritical}
	}
	for i, e := range d.Edges {
		if d.isOver(i) {
			return nil
		}
		edges[i] = jsonEdge{d.Nodes[e.From].ID(), d.Nodes[e.To].ID(), e.Kind.String(), e.IsCritical}
	}
	var b bytes.Buffer
	b.WriteString(`{"title": `)
	writeJSON(&b, d.Title)
	b.WriteString(",\n\"nodes\": ")
	writeLines(&b, nodes, d.isOver)
	b.WriteString(",\n\"edges\": ")
	writeLines(&b, edges, d.isOver)
	b.WriteString("}\n")
	return b.Bytes()
}

// writeLines writes an array with one element a line, until isOver. nil: all of it.
func writeLines(b *bytes.Buffer, all []any, isOver func(i int) bool) {
	b.WriteByte('[')
	for i, v := range all {
		if isOver != nil && isOver(i) {
			return
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		writeJSON(b, v)
	}
	b.WriteByte(']')
}

// writeJSON writes v, which is made of strings, numbers and lists of them.
func writeJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // r0>r4 stays readable
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("viz: %T can't be JSON: %v", v, err))
	}
	b.Truncate(b.Len() - 1) // Encode's newline
}
