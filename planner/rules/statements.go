package rules

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// parse reads a text.
func parse(name, text string) (*file, error) {
	p := &parser{lexer: newLexer(name, text)}
	p.file = &file{lexer: p.lexer}
	if len(text) > MaxBytes {
		return nil, p.errorf(0, "%d bytes of rules; allowed are %d", len(text), MaxBytes)
	}
	for {
		t, err := p.peek()
		if err != nil {
			return nil, err
		}
		if t.kind == end {
			return p.file, nil
		}
		if err := p.item(t); err != nil {
			return nil, err
		}
	}
}

// item reads a named value, a named condition or a rule.
func (p *parser) item(t token) (err error) {
	i := item{at: t.at}
	switch {
	case t.kind == named:
		i.value, err = p.value()
	case t.text == "let" && t.kind == word:
		i.let, err = p.let()
	case t.kind == word:
		i.statute, err = p.statute()
	default:
		err = p.errorf(t.at, "%s; expected a rule such as bcast: shape=flat, a named value such as $small = 32KiB, or let NAME = CONDITION", t.describe())
	}
	if err != nil {
		return err
	}
	next, err := p.peek()
	if err != nil {
		return err
	}
	i.to = next.at
	p.file.items = append(p.file.items, i)
	return nil
}

// value reads $name = NUMBER.
func (p *parser) value() (*value, error) {
	t, err := p.take()
	if err != nil {
		return nil, err
	}
	name := t.text[1:]
	for _, v := range p.file.values {
		if v.name == name {
			return nil, p.errorf(t.at, "$%s has a value already, in line %d", name, v.line)
		}
	}
	if err := p.expect("=", "= and a number after $"+name); err != nil {
		return nil, err
	}
	n, err := p.take()
	if err != nil {
		return nil, err
	}
	if n.kind != number && n.text != "all" {
		return nil, p.errorf(n.at, "%s; expected a number, such as 8, 32KiB, 10gbit or 50us, or all", n.describe())
	}
	v := &value{name: name, index: len(p.file.values), text: n.text}
	v.line, _ = p.position(t.at)
	if v.first, v.unit, err = readNumber(n.text); err != nil {
		return nil, p.errorf(n.at, "%s", err)
	}
	p.file.values = append(p.file.values, v)
	return v, nil
}

// let reads let NAME = EXPRESSION.
func (p *parser) let() (*let, error) {
	p.has = false // let
	t, err := p.take()
	if err != nil {
		return nil, err
	}
	if t.kind != word || slices.Contains(words, t.text) {
		return nil, p.errorf(t.at, "%s; expected the name of a condition", t.describe())
	}
	_, taken := findParam(t.text)
	if taken || t.text == "fits" || findFunction(t.text) > 0 || p.findLet(t.text) != nil {
		return nil, p.errorf(t.at, "%q has a meaning already", t.text)
	}
	if err := p.expect("=", "= after let "+t.text); err != nil {
		return nil, err
	}
	is, err := p.either()
	if err != nil {
		return nil, err
	}
	l := &let{t.text, is}
	p.file.lets = append(p.file.lets, l)
	return l, nil
}

// statute reads HEAD, HEAD: BODY, or PART HEAD, HEAD: BODY.
func (p *parser) statute() (*statute, error) {
	s := &statute{}
	if t, err := p.peek(); err == nil {
		if part, is := findPart(t.text); is {
			s.part, p.has = part, false
		}
	}
	p.part = s.part
	for {
		t, err := p.take()
		if err != nil {
			return nil, err
		}
		h, err := p.head(t)
		if err != nil {
			return nil, err
		}
		if slices.Contains(s.heads, h) {
			return nil, p.errorf(t.at, "%q is named twice", t.text)
		}
		s.heads = append(s.heads, h)
		if !p.accept(",") {
			break
		}
	}
	if err := p.expect(":", "a colon after the names of collectives, or a comma and one more"); err != nil {
		return nil, err
	}
	p.file.statutes = append(p.file.statutes, s)
	var err error
	if s.body, err = p.body(); err == nil {
		err = p.inTime(s)
	}
	return s, err
}

// head reads whom a rule is for.
func (p *parser) head(t token) (h head, err error) {
	if t.kind == word && t.text == "all" {
		return h, nil
	}
	if p.part != WholePlan {
		names := namedValues(ofCollective)
		if i := slices.Index(names, t.text); i >= 0 && t.kind == word {
			return head{coll: tasks.Collective(i + 1)}, nil
		}
		return h, p.errorf(t.at, "%s; expected a collective: %s, or all", t.describe(), strings.Join(names, ", "))
	}
	if t.kind == word {
		if h.coll, err = tasks.ParseCollective(t.text); err == nil {
			return h, nil
		}
		name, differ := strings.CutSuffix(t.text, "v")
		if h.coll, err = tasks.ParseCollective(name); err == nil && differ && (h.coll.HasCounts() || h.coll.HasMatrix()) {
			h.differ = true
			return h, nil
		}
	}
	var known []string
	for _, c := range tasks.Requestable() {
		known = append(known, c.String())
		if c.HasCounts() || c.HasMatrix() {
			known = append(known, c.String()+"v")
		}
	}
	return h, p.errorf(t.at, "%s; expected a collective: %s, or all", t.describe(), strings.Join(known, ", "))
}

// body reads if … then … elif … else …, a body in parentheses, or a leaf.
func (p *parser) body() (*body, error) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	if err := p.descend(t.at); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	b := &body{at: t.at}
	switch {
	case p.accept("("):
		if b, err = p.body(); err == nil {
			err = p.expect(")", ") after the rule in parentheses")
		}
	case t.kind == word && t.text == "if":
		err = p.arms(b)
	default:
		b.leaf, err = p.leaf(t)
	}
	return b, err
}

// arms reads conditions with what follows, up to the else.
func (p *parser) arms(b *body) error {
	t, _ := p.take() // if
	for {
		a := arm{at: t.at}
		var err error
		if a.when, err = p.condition(); err != nil {
			return err
		}
		if err = p.expect("then", "then, or an operator such as and"); err != nil {
			return err
		}
		if a.then, err = p.body(); err != nil {
			return err
		}
		b.arms = append(b.arms, a)
		if p.accept(";") {
			if t, err = p.peek(); err != nil {
				return err
			}
			if t.text != "elif" && t.text != "else" {
				return p.errorf(t.at, "%s; expected elif or else after a semicolon", t.describe())
			}
		}
		if t, err = p.peek(); err != nil {
			return err
		}
		switch {
		case p.accept("elif"):
		case p.accept("else"):
			b.orElse, err = p.body()
			return err
		default:
			return nil
		}
	}
}
