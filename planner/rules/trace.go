package rules

import (
	"slices"
	"strconv"
	"strings"
)

// Step is a comparison on the way to a decision.
type Step struct {
	Line  int
	Text  string // as the rules say it, with the values of names: nodes >= $few (8)
	Given string // values of the request, such as nodes 4
	Holds bool
}

// String says it in words: nodes >= 8 does not hold: nodes 4.
func (s Step) String() string {
	verb := "holds"
	if !s.Holds {
		verb = "does not hold"
	}
	if s.Given == "" {
		return s.Text + " " + verb
	}
	return s.Text + " " + verb + ": " + s.Given
}

// Trace decides as [Base.Decide] does, and says by which comparisons.
func (b *Base) Trace(p *Params) (l *Leaf, steps []Step) {
	at := b.root(p)
	for at >= 0 {
		n := &b.nodes[at]
		s := Step{Text: b.words(n.is), Given: b.listGiven(n.is, p), Holds: b.holds(n, p)}
		s.Line, _ = b.file.lexer.position(n.is.at)
		if at = n.no; s.Holds {
			at = n.yes
		}
		steps = append(steps, s)
	}
	if at == undecided {
		return nil, steps
	}
	return b.leaves[^at], steps
}

// words returns an expression with the values of names: bytes <= $small (32KiB).
func (b *Base) words(e *expr) string {
	seen := map[*value]bool{}
	return writeNaming(e, 0, func(v *value) string {
		if seen[v] {
			return v.String()
		}
		seen[v] = true
		return v.String() + " (" + writeNumber(b.now[v.index].Load(), v.unit) + ")"
	})
}

// listGiven lists the parameters of an expression with their values.
func (b *Base) listGiven(e *expr, p *Params) string {
	var all []string
	e.walk(func(e *expr) {
		if e.op == ask && parameters[e.param].unit != truth {
			text := e.param.String() + " " + writeNumber(p.Get(e.param), parameters[e.param].unit)
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	})
	return strings.Join(all, ", ")
}

// Position returns the place of a leaf: FILE:12.
func (b *Base) Position(l *Leaf) string { return b.Name + ":" + strconv.Itoa(l.Line) }
