package viz

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// DOT writes the drawing for Graphviz: a box around each rank, in the order given, in it one
// around each level, filled in the level's colour; time goes to the right. Everything has its
// place already, and Graphviz's layout nop2 keeps it.
func (d *Drawing) DOT() []byte {
	var b bytes.Buffer
	dotHead(&b, append(slices.Clone(d.Title), d.legend()...))
	b.WriteString("\tgraph [layout=nop2, outputorder=nodesfirst];\n")
	l := newLayout(d)
	for i := range l.boxes {
		l.dotBox(&b, &l.boxes[i])
	}
	for i := range d.Nodes {
		if d.isOver(i) {
			return nil
		}
		l.dotNode(&b, i)
	}
	for _, onPath := range []bool{false, true} { // above the others
		for i, e := range d.Edges {
			if d.isOver(i) {
				return nil
			}
			if e.IsCritical == onPath {
				l.dotEdge(&b, e)
			}
		}
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// dotHead begins a graph with a title and the looks all pictures share.
func dotHead(b *bytes.Buffer, title []string) {
	b.WriteString("digraph {\n")
	fmt.Fprintf(b, "\tgraph [rankdir=LR, newrank=true, nodesep=0.15, ranksep=0.3, fontname=\"Helvetica\", fontsize=11, labelloc=t, labeljust=l, label=%s];\n",
		quoteLines(title))
	b.WriteString("\tnode [shape=box, style=\"rounded,filled\", color=\"#555555\", fontname=\"Helvetica\", fontsize=10, width=0.5, height=0.28, margin=\"0.08,0.04\"];\n")
	b.WriteString("\tedge [color=\"#555555\", arrowsize=0.6];\n")
}

// edgeStyles are the attributes of edges.
var edgeStyles = [maxEdge]string{
	Slot:    ", style=dashed",
	Order:   ", style=dotted, color=\"#999999\"",
	Stage:   ", color=\"#BBBBBB\"",
	Message: ", color=\"#0077BB\", penwidth=1.8",
	Notice:  ", color=\"#009988\", style=dashed",
	Path:    ", style=dotted",
}

// critical are the attributes of the critical path.
const critical = ", color=\"#CC3311\", penwidth=3"

var edgeLooks = [maxEdge]string{
	Data: "solid: data", Slot: "dashed: slot reuse", Order: "dotted: order", Stage: "light grey: the stage before",
	After: "grey: after", Message: "blue: data between ranks", Notice: "green, dashed: notify to await",
	Path: "red, dotted: the path waited for a processor",
}

// legend is a line to explain the kinds of edges in the drawing.
func (d *Drawing) legend() []string {
	var seen [maxEdge]bool
	marked := false
	for _, e := range d.Edges {
		seen[e.Kind] = true
		marked = marked || e.IsCritical && e.Kind != Path
	}
	var parts []string
	for k, look := range edgeLooks {
		if seen[k] {
			parts = append(parts, look)
		}
	}
	if marked {
		parts = append(parts, "red, thick: the critical path")
	}
	if parts == nil {
		return nil
	}
	return []string{strings.Join(parts, "; ")}
}

// Places of a box's label: Graphviz itself would put it on the box's upper line. Points.
const (
	labelHeight = 14
	labelBelow  = 3 // that line
	labelInside = 4 // the left one
)

// dotBox draws the box behind a rank or a level, and its label on it.
func (l *layout) dotBox(b *bytes.Buffer, o *box) {
	look := `color="#BBBBBB", fillcolor="#F4F4F4"`
	if o.level != 0 {
		look = fmt.Sprintf("color=%q, fillcolor=white", colour(o.level).line)
	}
	middle := (o.left + o.right) / 2
	fmt.Fprintf(b, "\t%s [label=\"\", %s, %s];\n", quote(o.name), look,
		l.placeAttributes(point{middle, (o.top + o.bottom) / 2}, o.right-o.left, o.bottom-o.top))
	fmt.Fprintf(b, "\t%s [label=\"%s\\l\", shape=plaintext, style=\"\", fontsize=11, %s];\n", quote("label of "+o.name), escape(o.label),
		l.placeAttributes(point{middle + labelInside, o.top + labelBelow + labelHeight/2}, o.right-o.left, labelHeight))
}

// dotNode draws a task or a step.
func (l *layout) dotNode(b *bytes.Buffer, i int) {
	n, c := &l.Nodes[i], l.column[i]
	bold := ""
	if n.IsCritical {
		bold = critical
	}
	fmt.Fprintf(b, "\t%s [label=%s, tooltip=%s, fixedsize=true, fillcolor=%q%s, %s];\n", quote(n.ID()), quoteLines(twoLines(n.Label)),
		quote(n.Label+": "+n.Detail), colour(n.Level).fill, bold, l.placeAttributes(point{l.left[c] + l.width[c]/2, l.middle[l.row[i]]}, l.width[c], l.height))
}

// placeAttributes returns the attributes of a node with its place and its size.
func (l *layout) placeAttributes(middle point, width, height int) string {
	return fmt.Sprintf("pos=\"%d,%d\", width=%.3f, height=%.3f", middle.x, l.bottom-middle.y, float64(width)/72, float64(height)/72)
}

func (l *layout) dotEdge(b *bytes.Buffer, e Edge) {
	style := edgeStyles[e.Kind]
	if e.IsCritical {
		style += critical
	}
	fmt.Fprintf(b, "\t%s -> %s [pos=\"%s\"%s];\n", quote(l.Nodes[e.From].ID()), quote(l.Nodes[e.To].ID()), l.writeCurve(l.route(e)), style)
}

// twoLines breaks a step's label after its primitive: ib#3 send, r0>r4 64KiB.
func twoLines(label string) []string {
	words := strings.SplitN(label, " ", 3)
	if len(words) < 3 {
		return []string{label}
	}
	return []string{words[0] + " " + words[1], words[2]}
}

// shade is a level's colours: a light one for fills under black text and a darker
// one for lines.
type shade struct{ fill, line string }

// shades are Paul Tol's "light" scheme, made for labelled cells and distinct
// in normal and colour-blind vision; the first four are the usual levels'.
var shades = []shade{
	{"#99DDFF", "#3399CC"},
	{"#EE8866", "#BB5533"},
	{"#EEDD88", "#AA9922"},
	{"#FFAABB", "#CC6677"},
	{"#BBCC33", "#889911"},
	{"#77AADD", "#336699"},
	{"#44BB99", "#228866"},
	{"#DDDDDD", "#888888"},
}

func colour(symbol byte) shade { return shades[tierOrder(symbol)%len(shades)] }

// tierOrder numbers symbols, the usual levels first.
func tierOrder(symbol byte) int {
	const usual = "simw"
	if i := strings.IndexByte(usual, symbol); i >= 0 {
		return i
	}
	return len(usual) + int(symbol-'a')
}

// quote writes a string that Graphviz shows as it is.
func quote(s string) string { return `"` + escape(s) + `"` }

// quoteLines writes a label of left-aligned lines if there are several, centred
// if it is one.
func quoteLines(lines []string) string {
	if len(lines) == 1 {
		return quote(lines[0])
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, l := range lines {
		b.WriteString(escape(l) + `\l`)
	}
	b.WriteByte('"')
	return b.String()
}

// escape keeps quotes and backslashes from ending or changing a string and
// ampersands from beginning an HTML entity.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`).Replace(s)
}
