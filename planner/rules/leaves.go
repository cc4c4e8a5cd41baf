package rules

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// leaf reads default or a plan, and because "…".
func (p *parser) leaf(t token) *Leaf {
	l := &Leaf{}
	l.Line, l.Column = p.position(t.at)
	switch {
	case p.accept("default"):
		l.Text, l.Default = "default", true
	case t.kind != word || slices.Contains(words, t.text):
		p.fail(t.at, "%s; expected a plan such as shape=flat,ib=adapt/binomial, default, if, or (", t.describe())
	default:
		p.rewind()
		p.plan(l)
	}
	if p.accept("because") {
		if t := p.take(); t.kind == quoted {
			l.Because, l.reason = t.text[1:len(t.text)-1], p.reason(t)
		} else {
			p.fail(t.at, "%s; expected a reason in quotation marks", t.describe())
		}
	}
	return l
}

// reason reads the numbers in braces of a text.
func (p *parser) reason(t token) (all []phrase) {
	text, at, stop := t.text, 1, p.at
	for at < len(text)-1 && p.err == nil {
		open := strings.IndexByte(text[at:], '{')
		if open < 0 {
			all = append(all, phrase{text: text[at : len(text)-1]})
			break
		}
		if open > 0 {
			all = append(all, phrase{text: text[at : at+open]})
		}
		p.at = t.at + at + open + 1
		e := p.sum()
		p.expect("}", "} after a number in a text")
		if e.isTruth() || p.at >= stop {
			p.fail(t.at+at+open, "expected a number in braces in a text")
		}
		all = append(all, phrase{is: e})
		at = p.at - t.at
	}
	p.at = stop
	return all
}

// plan reads the words of a plan. No token is ahead.
func (p *parser) plan(l *Leaf) {
	for p.err == nil {
		p.skip()
		begin := p.at
		for p.at < len(p.text) && isLetter(p.text[p.at]) {
			p.at++
		}
		key := p.text[begin:p.at]
		if key == "" || p.at == len(p.text) || p.text[p.at] != '=' {
			p.fail(begin, "expected a word of a plan such as fs=64KiB; keys are shape, fs, w, order, eager, a level (i, s, …) or a task kind (ib, sr, …)")
			return
		}
		if of := parts[p.part].words; of != nil && !slices.Contains(of, key) {
			p.fail(begin, "%s=; rules that begin with %v choose %s=", clip(key), p.part, strings.Join(of, "= and "))
		}
		p.at++
		if key == "by" && p.part == TaskPart {
			key = taskKey
		}
		value, holes := p.planValue(key)
		one, err := tasks.ParsePlan(key + "=" + value)
		if err != nil {
			p.fail(begin, "%s", err)
		}
		for _, k := range append(one.Keys(), fieldsOf(one)...) {
			if k != key {
				p.fail(begin, "%q is no word of a plan", key)
			}
		}
		if _, twice := l.plan.Choice(key); twice || slices.Contains(fieldsOf(l.plan), key) {
			p.fail(begin, "%s= is there twice", key)
		}
		l.plan = one.Over(l.plan)
		l.holes = append(l.holes, holes...)
		if l.Text != "" {
			l.Text += ","
		}
		l.Text += strings.Join(strings.Fields(p.text[begin:p.at]), " ")
		p.skip()
		if p.at == len(p.text) || p.text[p.at] != ',' {
			return
		}
		p.at++
	}
}

// fieldsOf lists the words of a plan beside choices.
func fieldsOf(p tasks.Plan) (all []string) {
	for key, has := range map[string]bool{"shape": p.Shape != 0, "fs": p.Segment != 0, "w": p.Window != 0, "order": p.Order != 0, "eager": p.Eager != 0} {
		if has {
			all = append(all, key)
		}
	}
	return all
}

// planValue reads the value of a key, with its holes. A hole has a number in its place.
func (p *parser) planValue(key string) (value string, holes []hole) {
	var b strings.Builder
	for p.err == nil && p.at < len(p.text) && !strings.ContainsRune(" \t\r\n,;)#", rune(p.text[p.at])) {
		c := p.text[p.at]
		if c != '{' && c != '$' {
			b.WriteByte(c)
			p.at++
			continue
		}
		begin := p.at
		h := hole{key: key, at: strings.Count(b.String(), "/")}
		whole := key == "fs" || key == "w" || key == "eager"
		if whole && b.Len() > 0 || !whole && (h.at < 2 || !strings.HasSuffix(b.String(), "/")) {
			p.fail(begin, "a formula or named value here; it takes the place of a number: fs=, w=, eager=, an inner segment or an algorithm's number")
		}
		if c == '{' {
			p.at++
			h.is = p.sum()
			p.expect("}", "} after the formula")
		} else {
			h.is = p.operand()
		}
		p.rewind()
		if h.is.isTruth() {
			p.fail(begin, "a condition; expected a number")
		}
		holes = append(holes, h)
		b.WriteString("2")
		if p.at < len(p.text) && !strings.ContainsRune(" \t\r\n,;)#/", rune(p.text[p.at])) {
			p.fail(p.at, "%q after a formula or named value; expected the next word of the plan, or /", p.text[p.at])
		}
	}
	return b.String(), holes
}
