package viz

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/levels"
)

// DOT writes the drawing for Graphviz: a box around each rank, in it one around
// each level, filled in the level's colour; time goes to the right.
func (d *Drawing) DOT() []byte {
	var b bytes.Buffer
	lines := append(slices.Clone(d.Title), d.legend()...)
	dotHead(&b, lines)
	for _, p := range slices.Backward(d.Ranks) { // Graphviz puts what comes first at the bottom
		d.dotRank(&b, p)
	}
	for _, e := range d.Edges {
		style := edgeStyles[e.Kind]
		if e.Stages > 1 {
			style = fmt.Sprintf(" [minlen=%d]", e.Stages)
		}
		fmt.Fprintf(&b, "\t%s -> %s%s;\n", quote(d.Nodes[e.From].ID()), quote(d.Nodes[e.To].ID()), style)
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

// edgeStyles are the attributes of edges. Order edges shape the picture like the
// others: they show the pipeline.
var edgeStyles = [maxEdge]string{
	Data:    "",
	Slot:    " [style=dashed]",
	Order:   " [style=dotted, color=\"#999999\"]",
	Stage:   " [color=\"#BBBBBB\", constraint=false]",
	After:   "",
	Message: " [color=\"#0077BB\", penwidth=1.8]",
	Notice:  " [color=\"#CC3311\", style=dashed]",
}

var edgeLooks = [maxEdge]string{
	Data: "solid: data", Slot: "dashed: slot reuse", Order: "dotted: order", Stage: "light grey: the stage before",
	After: "grey: after", Message: "blue: send to recv", Notice: "red, dashed: notify to await",
}

// legend is a line that explains the kinds of edges that occur.
func (d *Drawing) legend() []string {
	var seen [maxEdge]bool
	for _, e := range d.Edges {
		seen[e.Kind] = true
	}
	var parts []string
	for k, look := range edgeLooks {
		if seen[k] {
			parts = append(parts, look)
		}
	}
	if parts == nil {
		return nil
	}
	return []string{strings.Join(parts, "; ")}
}

func (d *Drawing) dotRank(b *bytes.Buffer, p Place) {
	nodes, _ := d.of(p.Rank)
	if len(nodes) == 0 {
		return
	}
	fmt.Fprintf(b, "\tsubgraph cluster_r%d {\n", p.Rank)
	fmt.Fprintf(b, "\t\tlabel=%s; style=\"rounded,filled\"; color=\"#BBBBBB\"; fillcolor=\"#F4F4F4\";\n", quote(p.String()))
	for _, tier := range d.Tiers {
		dotLevel(b, p.Rank, tier, nodes)
	}
	b.WriteString("\t}\n")
}

func dotLevel(b *bytes.Buffer, r levels.Rank, tier levels.Level, nodes []Node) {
	open := false
	for i := range nodes {
		n := &nodes[i]
		if n.Level != tier.Symbol {
			continue
		}
		if !open {
			open = true
			fmt.Fprintf(b, "\t\tsubgraph cluster_r%d_%c {\n", r, tier.Symbol)
			fmt.Fprintf(b, "\t\t\tlabel=%s; style=rounded; color=%q; fillcolor=none;\n", quote(tier.String()), colour(tier.Symbol).line)
			fmt.Fprintf(b, "\t\t\tnode [fillcolor=%q];\n", colour(tier.Symbol).fill)
		}
		bold := ""
		if n.IsCritical {
			bold = ", color=\"#CC3311\", penwidth=3"
		}
		fmt.Fprintf(b, "\t\t\t%s [label=%s, tooltip=%s%s];\n", quote(n.ID()), quoteLines(twoLines(n.Label)), quote(n.Label+": "+n.Detail), bold)
	}
	if open {
		b.WriteString("\t\t}\n")
	}
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
