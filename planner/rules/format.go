package rules

import (
	"slices"
	"strings"
)

// Format returns the text in the usual layout: one arm a line, with comments in their places.
// It decides the same.
func (b *Base) Format() string {
	w := &writer{comments: slices.Clone(b.file.lexer.comments), text: b.file.lexer.text}
	for n, i := range b.file.items {
		if n > 0 && w.gap(b.file.items[n-1], i) {
			w.WriteByte('\n')
		}
		w.writeComments(i.at, "")
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
	w.writeComments(len(w.text)+1, "")
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
	comments []comment // not written yet
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
	return strings.HasSuffix(withoutBlanks.Replace(w.text[:at]), "\n\n")
}

// withoutBlanks drops the blanks inside lines.
var withoutBlanks = strings.NewReplacer("\r", "", "\t", "", " ", "")

// writeComments writes the comments before a place, each on a line of its own.
func (w *writer) writeComments(at int, indent string) {
	for len(w.comments) > 0 && w.comments[0].at < at {
		c := w.comments[0]
		w.WriteString(indent + c.text + "\n")
		w.comments = w.comments[1:]
		if _, after, _ := strings.Cut(withoutBlanks.Replace(w.text[c.at:]), "\n"); strings.HasPrefix(after, "\n") && strings.TrimSpace(after) != "" && indent == "" {
			w.WriteByte('\n')
		}
	}
}

// rest writes the next comment before a place, if it stands behind other text on its line.
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
		w.writeComments(a.at, indent)
		w.WriteString(indent + map[bool]string{true: "if ", false: "elif "}[i == 0] + write(a.when, 0) + " then")
		w.body(a.then, indent+"\t", false)
		if i+1 < len(b.arms) {
			w.rest(b.arms[i+1].at)
		} else if b.orElse != nil {
			w.rest(b.orElse.at)
		}
	}
	if b.orElse != nil {
		w.WriteByte('\n')
		w.writeComments(b.orElse.at, indent)
		w.WriteString(indent + "else")
		w.body(b.orElse, indent+"\t", false)
	}
	if !top {
		w.WriteString("\n" + strings.TrimSuffix(indent, "\t") + ")")
	}
}

// inside lists the comments in a body, up to the beginning of its last part.
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

// String returns the leaf as rules write it.
func (l *Leaf) String() string {
	if l.Because == "" {
		return l.Text
	}
	return l.Text + ` because "` + l.Because + `"`
}

// write returns an expression as rules have it, in parentheses inside a stronger one.
func write(e *expr, around int) string { return writeNaming(e, around, (*value).String) }

// writeNaming is write with words for the named values.
func writeNaming(e *expr, around int, name func(*value) string) string {
	var text string
	mine := operators[e.op].strength
	joined := func(around int, by string) string {
		all := make([]string, len(e.args))
		for i, a := range e.args {
			all[i] = writeNaming(a, around, name)
		}
		return strings.Join(all, by)
	}
	switch e.op {
	case literal:
		return e.text
	case ask:
		return e.param.String()
	case nameOf:
		return name(e.value)
	case standsIn:
		return e.let.name
	case call:
		return e.text + "(" + joined(0, ", ") + ")"
	case not:
		text = "not " + joined(mine, "")
	case and, or:
		text = joined(mine+1, " "+operators[e.op].sign+" ")
	default:
		text = writeNaming(e.args[0], mine, name) + " " + operators[e.op].sign + " " + writeNaming(e.args[1], mine+1, name)
	}
	if mine < around {
		return "(" + text + ")"
	}
	return text
}
