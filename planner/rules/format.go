package rules

import (
	"slices"
	"strings"
)

// Format returns the text in the usual layout: one arm a line, with comments where they were.
// It decides the same.
func (b *Base) Format() string {
	w := &writer{comments: slices.Clone(b.file.lexer.comments), text: b.file.lexer.text}
	for n, i := range b.file.items {
		if n > 0 && w.gap(b.file.items[n-1], i) {
			w.WriteByte('\n')
		}
		w.before(i.at, "")
		switch {
		case i.value != nil:
			w.WriteString("$" + i.value.name + " = " + i.value.text)
		case i.let != nil:
			w.WriteString("let " + i.let.name + " = " + write(i.let.is, 0))
		default:
			names := make([]string, len(i.statute.heads))
			for k, h := range i.statute.heads {
				names[k] = h.String()
			}
			if i.statute.part != WholePlan {
				w.WriteString(i.statute.part.String() + " ")
			}
			w.WriteString(strings.Join(names, ", ") + ":")
			w.body(i.statute.body, "\t", true)
		}
		w.rest(i.to)
		w.WriteByte('\n')
	}
	w.before(len(w.text)+1, "")
	return w.String()
}

// String returns the name of a head in rules.
func (h head) String() string {
	switch {
	case h.coll == 0:
		return "all"
	case h.differ:
		return h.coll.String() + "v"
	}
	return h.coll.String()
}

// writer writes a file anew.
type writer struct {
	strings.Builder
	comments []comment // that were not written yet
	text     string
}

// gap reports whether a blank line is between two items: there was one, or one of them is a
// rule of several lines.
func (w *writer) gap(before, after item) bool {
	return before.statute != nil && before.statute.body.leaf == nil || after.statute != nil && after.statute.body.leaf == nil || w.blankBefore(after.at)
}

// blankBefore reports whether a blank line is above a place, or above the comments before it.
func (w *writer) blankBefore(at int) bool {
	for _, c := range w.comments {
		if c.at < at && c.alone {
			at = c.at
			break
		}
	}
	above := strings.NewReplacer("\r", "", "\t", "", " ", "").Replace(w.text[:at])
	return strings.HasSuffix(above, "\n\n")
}

// before writes the comments before a place, each on a line of its own.
func (w *writer) before(at int, indent string) {
	for len(w.comments) > 0 && w.comments[0].at < at {
		c := w.comments[0]
		w.WriteString(indent + c.text + "\n")
		w.comments = w.comments[1:]
		after := strings.NewReplacer("\r", "", "\t", "", " ", "").Replace(w.text[c.at:])
		if _, after, _ = strings.Cut(after, "\n"); strings.HasPrefix(after, "\n") && strings.TrimSpace(after) != "" && indent == "" {
			w.WriteByte('\n')
		}
	}
}

// rest writes a comment behind what was written last, if the next one before a place is one.
func (w *writer) rest(at int) {
	if len(w.comments) > 0 && w.comments[0].at < at && !w.comments[0].alone {
		w.WriteString(" " + w.comments[0].text)
		w.comments = w.comments[1:]
	}
}

// body writes a body behind its head or a then.
func (w *writer) body(b *body, indent string, top bool) {
	if b.leaf != nil {
		w.WriteString(" " + b.leaf.String())
		return
	}
	if len(b.arms) == 1 && top && isShort(b) && len(w.inside(b)) == 0 {
		w.WriteString(" " + line(b))
		return
	}
	if !top {
		w.WriteString(" (")
	}
	for i, a := range b.arms {
		w.WriteByte('\n')
		w.before(a.at, indent)
		w.WriteString(indent + map[bool]string{true: "if ", false: "elif "}[i == 0] + write(a.when, 0) + " then")
		w.body(a.then, indent+"\t", false)
		stop := len(w.text)
		if i+1 < len(b.arms) {
			stop = b.arms[i+1].at
		} else if b.orElse != nil {
			stop = b.orElse.at
		}
		if i+1 < len(b.arms) || b.orElse != nil {
			w.rest(stop)
		}
	}
	if b.orElse != nil {
		w.WriteByte('\n')
		w.before(b.orElse.at, indent)
		w.WriteString(indent + "else")
		w.body(b.orElse, indent+"\t", false)
	}
	if !top {
		w.WriteString("\n" + strings.TrimSuffix(indent, "\t") + ")")
	}
}

// inside lists the comments in a body, as far as it is known where it ends.
func (w *writer) inside(b *body) []comment {
	last := b.arms[len(b.arms)-1].then
	if b.orElse != nil {
		last = b.orElse
	}
	return slices.DeleteFunc(slices.Clone(w.comments), func(c comment) bool { return c.at < b.at || c.at > last.at })
}

// isShort reports whether a body fits on a line.
func isShort(b *body) bool {
	if b.arms[0].then.leaf == nil || b.orElse != nil && b.orElse.leaf == nil {
		return false
	}
	return len(line(b)) <= 100
}

// line writes a body of one arm on one line.
func line(b *body) string {
	text := "if " + write(b.arms[0].when, 0) + " then " + b.arms[0].then.leaf.String()
	if b.orElse != nil {
		text += " else " + b.orElse.leaf.String()
	}
	return text
}

// String returns the leaf as it is written.
func (l *leaf) String() string {
	text := l.text
	if l.isOpen {
		text = "default"
	}
	if l.because != "" {
		text += ` because "` + l.because + `"`
	}
	return text
}

// Strengths of operators: an operation weaker than the one around it stands in parentheses.
const (
	ofOr = iota + 1
	ofAnd
	ofNot
	ofComparison
	ofSum
	ofProduct
	ofOperand
)

// strength returns how strongly an operator holds its operands together.
func (o operator) strength() int {
	switch o {
	case or:
		return ofOr
	case and:
		return ofAnd
	case not:
		return ofNot
	case add, sub:
		return ofSum
	case mul, div:
		return ofProduct
	}
	if o.isComparison() {
		return ofComparison
	}
	return ofOperand
}

// write returns an expression as rules have it, in parentheses if what is around is stronger.
func write(e *expr, around int) string {
	var text string
	mine := e.op.strength()
	switch e.op {
	case literal:
		return e.text
	case ask:
		return e.param.String()
	case nameOf:
		return "$" + e.value.name
	case standsIn:
		return e.let.name
	case call:
		all := make([]string, len(e.args))
		for i, a := range e.args {
			all[i] = write(a, 0)
		}
		return e.text + "(" + strings.Join(all, ", ") + ")"
	case not:
		text = "not " + write(e.args[0], mine)
	case and, or:
		all := make([]string, len(e.args))
		for i, a := range e.args {
			all[i] = write(a, mine+1)
		}
		text = strings.Join(all, " "+signsOf[e.op]+" ")
	default:
		text = write(e.args[0], mine) + " " + signsOf[e.op] + " " + write(e.args[1], mine+1)
	}
	if mine < around {
		return "(" + text + ")"
	}
	return text
}
