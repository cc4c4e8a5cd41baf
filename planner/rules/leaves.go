package rules

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// leaf reads default or a plan, and because "…".
func (p *parser) leaf(t token) (l *leaf, err error) {
	l = &leaf{at: t.at}
	if p.accept("default") {
		l.isOpen = true
	} else {
		if t.kind != word || slices.Contains(words, t.text) {
			return nil, p.errorf(t.at, "%s; expected a plan such as shape=flat,ib=adapt/binomial, default, if, or (", t.describe())
		}
		p.rewind()
		if err := p.plan(l); err != nil {
			return nil, err
		}
	}
	if p.accept("because") {
		t, err := p.take()
		if err != nil {
			return nil, err
		}
		if t.kind != quoted {
			return nil, p.errorf(t.at, "%s; expected a reason in quotation marks", t.describe())
		}
		l.because = t.text[1 : len(t.text)-1]
		if l.reason, err = p.reason(t); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// reason reads the numbers in braces of a text.
func (p *parser) reason(t token) (all []phrase, err error) {
	text, at, stop := t.text, 1, p.at
	for at < len(text)-1 {
		open := strings.IndexByte(text[at:], '{')
		if open < 0 {
			all = append(all, phrase{text: text[at : len(text)-1]})
			break
		}
		if open > 0 {
			all = append(all, phrase{text: text[at : at+open]})
		}
		p.at = t.at + at + open + 1
		e, err := p.sum()
		if err == nil {
			err = p.expect("}", "} after a number in a text")
		}
		if err == nil && (e.isTruth() || p.at >= stop) {
			err = p.errorf(t.at+at+open, "expected a number in braces in a text")
		}
		if err != nil {
			return nil, err
		}
		all = append(all, phrase{is: e})
		at = p.at - t.at
	}
	p.at = stop
	return all, nil
}

// plan reads the words of a plan. No token is ahead.
func (p *parser) plan(l *leaf) error {
	for {
		p.skip()
		begin := p.at
		for p.at < len(p.text) && isLetter(p.text[p.at]) {
			p.at++
		}
		key := p.text[begin:p.at]
		if key == "" || p.at == len(p.text) || p.text[p.at] != '=' {
			return p.errorf(begin, "expected a word of a plan such as fs=64KiB; keys are shape, fs, w, order, eager, a level (i, s, …) or a task kind (ib, sr, …)")
		}
		if of := parts[p.part].words; of != nil && !slices.Contains(of, key) {
			return p.errorf(begin, "%s=; rules that begin with %v choose %s=", clip(key), p.part, strings.Join(of, "= and "))
		}
		p.at++
		if key == "by" && p.part == TaskPart {
			key = taskKey
		}
		value, holes, err := p.planValue(key)
		if err != nil {
			return err
		}
		one, err := tasks.ParsePlan(key + "=" + value)
		if err != nil {
			return p.errorf(begin, "%s", err)
		}
		for _, k := range append(one.Keys(), fieldsOf(one)...) {
			if k != key {
				return p.errorf(begin, "%q is no word of a plan", key)
			}
		}
		if _, twice := l.plan.Choice(key); twice || slices.Contains(fieldsOf(l.plan), key) {
			return p.errorf(begin, "%s= is there twice", key)
		}
		l.plan = one.Over(l.plan)
		l.holes = append(l.holes, holes...)
		if l.text != "" {
			l.text += ","
		}
		l.text += strings.Join(strings.Fields(p.text[begin:p.at]), " ")
		p.skip()
		if p.at == len(p.text) || p.text[p.at] != ',' {
			return nil
		}
		p.at++
	}
}

// fieldsOf lists the words that a plan has beside choices.
func fieldsOf(p tasks.Plan) (all []string) {
	for key, has := range map[string]bool{"shape": p.Shape != 0, "fs": p.Segment != 0, "w": p.Window != 0, "order": p.Order != 0, "eager": p.Eager != 0} {
		if has {
			all = append(all, key)
		}
	}
	return all
}

// planValue reads what stands after a key, with its holes. A hole has a number in its place.
func (p *parser) planValue(key string) (value string, holes []hole, err error) {
	var b strings.Builder
	for p.at < len(p.text) && !strings.ContainsRune(" \t\r\n,;)#", rune(p.text[p.at])) {
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
			return "", nil, p.errorf(begin, "a formula or named value here; it takes the place of a number: fs=, w=, eager=, an inner segment or an algorithm's number")
		}
		if c == '{' {
			p.at++
			if h.is, err = p.sum(); err == nil {
				err = p.expect("}", "} after the formula")
			}
		} else {
			h.is, err = p.operand()
		}
		if err != nil {
			return "", nil, err
		}
		p.rewind()
		if h.is.isTruth() {
			return "", nil, p.errorf(begin, "a condition; expected a number")
		}
		holes = append(holes, h)
		b.WriteString("2")
		if p.at < len(p.text) && !strings.ContainsRune(" \t\r\n,;)#/", rune(p.text[p.at])) {
			return "", nil, p.errorf(p.at, "%q after a formula or named value; expected the next word of the plan, or /", p.text[p.at])
		}
	}
	return b.String(), holes, nil
}
