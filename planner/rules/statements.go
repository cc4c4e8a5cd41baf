package rules

import (
	"slices"
	"strings"
)

// parse reads a text.
func parse(name, text string) (*file, error) {
	p := &parser{lexer: newLexer(name, text)}
	p.file = &file{lexer: p.lexer}
	if len(text) > MaxBytes {
		p.fail(0, "%d bytes of rules; allowed are %d", len(text), MaxBytes)
	}
	for t := p.peek(); t.kind != end; t = p.peek() {
		p.item(t)
	}
	return p.file, p.err
}

// item reads a named value, a named condition or a rule.
func (p *parser) item(t token) {
	i := item{at: t.at}
	switch {
	case t.kind == named:
		i.value = p.value()
	case t.text == "let" && t.kind == word:
		i.let = p.let()
	case t.kind == word:
		i.statute = p.statute()
	default:
		p.fail(t.at, "%s; expected a rule such as bcast: shape=flat, a named value such as $small = 32KiB, or let NAME = CONDITION", t.describe())
	}
	i.to = p.peek().at
	p.file.items = append(p.file.items, i)
}

// value reads $name = NUMBER.
func (p *parser) value() *value {
	t := p.take()
	name := t.text[1:]
	if v := p.file.find(name); v != nil {
		p.fail(t.at, "$%s has a value already, in line %d", name, v.line)
	}
	p.expect("=", "= and a number after $"+name)
	n := p.take()
	if n.kind != number && n.text != "all" {
		p.fail(n.at, "%s; expected a number, such as 8, 32KiB, 10gbit or 50us, or all", n.describe())
	}
	v := &value{name: name, index: len(p.file.values), text: n.text}
	v.line, _ = p.position(t.at)
	v.first, v.unit = p.number(n)
	p.file.values = append(p.file.values, v)
	return v
}

// let reads let NAME = EXPRESSION.
func (p *parser) let() *let {
	p.has = false // let
	t := p.take()
	if t.kind != word || slices.Contains(words, t.text) {
		p.fail(t.at, "%s; expected the name of a condition", t.describe())
	}
	_, taken := findParam(t.text)
	if taken || t.text == "fits" || findFunction(t.text) > 0 || p.findLet(t.text) != nil {
		p.fail(t.at, "%q has a meaning already", t.text)
	}
	p.expect("=", "= after let "+t.text)
	l := &let{t.text, p.either()}
	p.file.lets = append(p.file.lets, l)
	return l
}

// statute reads HEAD, HEAD: BODY, or PART HEAD, HEAD: BODY.
func (p *parser) statute() *statute {
	s := &statute{}
	if part, is := findPart(p.peek().text); is {
		s.part, p.has = part, false
	}
	p.part = s.part
	for {
		t := p.take()
		h := p.head(t)
		if slices.Contains(s.heads, h) {
			p.fail(t.at, "%q is named twice", t.text)
		}
		s.heads = append(s.heads, h)
		if !p.accept(",") {
			break
		}
	}
	p.expect(":", "a colon after the names of collectives, or a comma and one more")
	p.file.statutes = append(p.file.statutes, s)
	s.body = p.body()
	p.inTime(s)
	return s
}

// head reads the name of a collective, or all.
func (p *parser) head(t token) head {
	var known []string
	for _, c := range p.part.collectives() {
		for _, h := range []head{{coll: c}, {coll: c, differ: true}} {
			if h.differ && (p.part != WholePlan || !c.HasCounts() && !c.HasMatrix()) {
				continue
			}
			if t.kind == word && t.text == h.String() {
				return h
			}
			known = append(known, h.String())
		}
	}
	if t.kind != word || t.text != "all" {
		p.fail(t.at, "%s; expected a collective: %s, or all", t.describe(), strings.Join(known, ", "))
	}
	return head{}
}

// body reads if … then … elif … else …, a body in parentheses, or a leaf.
func (p *parser) body() *body {
	t := p.peek()
	defer p.descend(t.at)()
	b := &body{at: t.at}
	switch {
	case p.accept("("):
		b = p.body()
		p.expect(")", ") after the rule in parentheses")
	case t.kind == word && t.text == "if":
		p.arms(b)
	default:
		b.leaf = p.leaf(t)
	}
	return b
}

// arms reads conditions with their bodies, up to the else.
func (p *parser) arms(b *body) {
	t := p.take() // if
	for {
		a := arm{at: t.at, when: p.condition()}
		p.expect("then", "then, or an operator such as and")
		a.then = p.body()
		b.arms = append(b.arms, a)
		closed := p.accept(";")
		if t = p.peek(); closed && t.text != "elif" && t.text != "else" {
			p.fail(t.at, "%s; expected elif or else after a semicolon", t.describe())
		}
		switch {
		case p.accept("elif"):
		case p.accept("else"):
			b.orElse = p.body()
			return
		default:
			return
		}
	}
}

// inTime complains of parameters from later parts.
func (p *parser) inTime(s *statute) {
	s.body.each(func(e *expr) {
		if since := parameters[e.param].since; e.op == ask && s.part < since {
			p.fail(e.at, "%v isn't known here; rules that begin with %s may ask for it", e.param, list(names(since)))
		}
	})
}

// names lists the parts from one on.
func names(since Part) (all []string) {
	for part := since; part < maxPart; part++ {
		all = append(all, part.String())
	}
	return all
}
