package rules

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// Limits of files.
const (
	// MaxBytes bounds a file of rules, which rank 0 gives all ranks of a job.
	MaxBytes = 256 << 10
	maxDepth = 64 // of nested conditions and formulas
)

// words are those with a meaning of their own.
var words = []string{"if", "then", "elif", "else", "default", "because", "and", "or", "not", "let", "all"}

// parser makes a file of a text.
type parser struct {
	*lexer
	ahead token // not taken yet, if has
	has   bool
	depth int
	part  Part // that the rule at work decides
	file  *file
}

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

// peek returns the next token without taking it.
func (p *parser) peek() (t token, err error) {
	if !p.has {
		p.ahead, err = p.next()
		p.has = err == nil
	}
	return p.ahead, err
}

// take returns the next token.
func (p *parser) take() (token, error) {
	t, err := p.peek()
	p.has = false
	return t, err
}

// rewind makes the lexer begin where the token ahead does.
func (p *parser) rewind() {
	if p.has {
		p.at, p.has = p.ahead.at, false
	}
}

// accept takes the next token if it is this word or sign.
func (p *parser) accept(text string) bool {
	t, err := p.peek()
	if err != nil || t.text != text || t.kind != word && t.kind != symbol {
		return false
	}
	p.has = false
	return true
}

// expect takes a word or sign, or complains.
func (p *parser) expect(text, what string) error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	if !p.accept(text) {
		return p.errorf(t.at, "%s; expected %s", t.describe(), what)
	}
	return nil
}

// descend counts what is nested.
func (p *parser) descend(at int) error {
	if p.depth++; p.depth > maxDepth {
		return p.errorf(at, "nested more than %d deep", maxDepth)
	}
	return nil
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

func (p *parser) findLet(name string) *let {
	for _, l := range p.file.lets {
		if l.name == name {
			return l
		}
	}
	return nil
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

// condition reads an expression that holds or not.
func (p *parser) condition() (*expr, error) {
	e, err := p.either()
	if err == nil && !e.isTruth() {
		err = p.errorf(e.at, "a number; expected a condition, such as bytes <= 4KiB")
	}
	return e, err
}

// either reads conditions with or between them.
func (p *parser) either() (*expr, error) {
	return p.joined("or", or, func() (*expr, error) { return p.joined("and", and, p.negation) })
}

// joined reads what one operator joins.
func (p *parser) joined(by string, op operator, read func() (*expr, error)) (*expr, error) {
	e, err := read()
	for err == nil && p.accept(by) {
		var f *expr
		if f, err = read(); err != nil {
			return nil, err
		}
		for _, x := range []*expr{e, f} {
			if !x.isTruth() {
				return nil, p.errorf(x.at, "a number beside %s; expected a condition, such as bytes <= 4KiB", by)
			}
		}
		if e.op == op {
			e.args = append(e.args, f)
		} else {
			e = &expr{op: op, at: e.at, args: []*expr{e, f}}
		}
	}
	return e, err
}

// negation reads a condition that may have not before it.
func (p *parser) negation() (*expr, error) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	if !p.accept("not") {
		return p.comparison()
	}
	if err := p.descend(t.at); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	e, err := p.negation()
	if err == nil && !e.isTruth() {
		err = p.errorf(e.at, "a number after not; expected a condition, such as bytes <= 4KiB")
	}
	return &expr{op: not, at: t.at, args: []*expr{e}}, err
}

// comparison reads two numbers with a sign between them, or what stands alone.
func (p *parser) comparison() (*expr, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	if t.text == "==" {
		t.text = "="
	}
	for op := less; op <= unequal; op++ {
		if t.kind != symbol || t.text != signsOf[op] {
			continue
		}
		p.has = false
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		for _, x := range []*expr{left, right} {
			if x.isTruth() {
				return nil, p.errorf(x.at, "a condition beside %s; expected a number", t.text)
			}
		}
		if a, b := left.unitOf(), right.unitOf(); a != b && a != plain && b != plain {
			return nil, p.errorf(t.at, "%s are compared with %s", unitNames[a], unitNames[b])
		}
		return &expr{op: op, at: left.at, args: []*expr{left, right}}, nil
	}
	return left, nil
}

// unitNames are what complaints call units.
var unitNames = map[unit]string{plain: "numbers", inBytes: "bytes", inBits: "bits a second", nanosec: "times", truth: "conditions", ofShape: "shapes", ofCollective: "collectives"}

// sum reads what + and - join.
func (p *parser) sum() (*expr, error) { return p.chain(p.product, add, sub) }

// product reads what * and / join.
func (p *parser) product() (*expr, error) { return p.chain(p.operand, mul, div) }

// chain reads what two operators join, from left to right.
func (p *parser) chain(read func() (*expr, error), ops ...operator) (*expr, error) {
	e, err := read()
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		t, err := p.peek()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(ops, func(o operator) bool { return t.kind == symbol && t.text == signsOf[o] })
		if i < 0 {
			return e, nil
		}
		if n == maxDepth {
			return nil, p.errorf(t.at, "more than %d operands", maxDepth)
		}
		p.has = false
		f, err := read()
		if err != nil {
			return nil, err
		}
		for _, x := range []*expr{e, f} {
			if x.isTruth() {
				return nil, p.errorf(x.at, "a condition beside %s; expected a number", t.text)
			}
		}
		e = &expr{op: ops[i], at: e.at, args: []*expr{e, f}}
	}
}

// operand reads a number, a parameter, a name, a call, or something in parentheses.
func (p *parser) operand() (*expr, error) {
	t, err := p.take()
	if err != nil {
		return nil, err
	}
	e := &expr{at: t.at, text: t.text}
	switch {
	case t.kind == number || t.text == "all" && t.kind == word:
		if e.number, e.unit, err = readNumber(t.text); err != nil {
			return nil, p.errorf(t.at, "%s", err)
		}
		return e, nil
	case t.kind == named:
		for _, v := range p.file.values {
			if v.name == t.text[1:] {
				e.op, e.value = nameOf, v
				return e, nil
			}
		}
		return nil, p.errorf(t.at, "%s has no value; write a line such as %s = 32KiB before", t.text, t.text)
	case t.kind == symbol && t.text == "(":
		if err := p.descend(t.at); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		if e, err = p.either(); err == nil {
			err = p.expect(")", ") or an operator")
		}
		return e, err
	case t.kind == word && findFunction(t.text) > 0:
		e.calls = findFunction(t.text)
		return e, p.call(e)
	case t.kind == word && t.text == "fits":
		return e, p.fits(e)
	case t.kind == word:
		if q, known := findParam(t.text); known {
			e.op, e.param = ask, q
			if u := parameters[q].unit; u == ofShape || u == ofCollective {
				return p.byName(e, u)
			}
			return e, nil
		}
		if l := p.findLet(t.text); l != nil {
			e.op, e.let = standsIn, l
			return e, nil
		}
	}
	return nil, p.unknown(t)
}

// unknown complains of a token that is no operand.
func (p *parser) unknown(t token) error {
	if why := withheld[t.text]; why != "" {
		return p.errorf(t.at, "%q is nothing to decide by: %s", t.text, why)
	}
	known := []string{"fits(…)"}
	for _, q := range parameters[:firstFits] {
		known = append(known, q.name)
	}
	for _, l := range p.file.lets {
		known = append(known, l.name)
	}
	for _, f := range functions[minOf:] {
		known = append(known, f.name+"(…)")
	}
	return p.errorf(t.at, "%s; expected a number such as 64KiB, a $name, not, (, or one of %s", t.describe(), list(known))
}

// call reads the operands of a function.
func (p *parser) call(e *expr) error {
	e.op = call
	if err := p.descend(e.at); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if err := p.expect("(", "( after "+e.text); err != nil {
		return err
	}
	operands := functions[e.calls].operands
	for i := range operands {
		if i > 0 {
			if err := p.expect(",", "a comma: "+e.text+" has "+strconv.Itoa(operands)+" operands"); err != nil {
				return err
			}
		}
		x, err := p.sum()
		if err != nil {
			return err
		}
		if x.isTruth() {
			return p.errorf(x.at, "a condition in %s; expected a number", e.text)
		}
		e.args = append(e.args, x)
	}
	return p.expect(")", ") after the operands of "+e.text)
}

// fits reads the shape after fits.
func (p *parser) fits(e *expr) error {
	if err := p.expect("(", "( after fits"); err != nil {
		return err
	}
	n, _, err := p.name(ofShape)
	if err != nil {
		return err
	}
	e.op, e.param = ask, Fits(tasks.Shape(n))
	return p.expect(")", ") after the shape")
}

// byName reads what a parameter with names for values is compared with.
func (p *parser) byName(e *expr, u unit) (*expr, error) {
	op := equal
	switch {
	case p.accept("!="):
		op = unequal
	case !p.accept("=") && !p.accept("=="):
		t, err := p.peek()
		if err == nil {
			err = p.errorf(t.at, "%s; expected = or != after %v", t.describe(), e.param)
		}
		return nil, err
	}
	n, t, err := p.name(u)
	value := &expr{at: t.at, number: n, text: t.text, unit: u}
	return &expr{op: op, at: e.at, args: []*expr{e, value}}, err
}

// name reads a name that stands for a value, from 1.
func (p *parser) name(u unit) (n int64, t token, err error) {
	if t, err = p.take(); err != nil {
		return 0, t, err
	}
	names := namedValues(u)
	i := slices.Index(names, t.text)
	if i < 0 || t.kind != word {
		return 0, t, p.errorf(t.at, "%s; expected one of %s", t.describe(), strings.Join(names, ", "))
	}
	return int64(i + 1), t, nil
}

// units are what numbers may end with beside those of bytes.
var units = []struct {
	suffix string
	unit   unit
	times  float64
}{
	{"gbit", inBits, 1e9},
	{"mbit", inBits, 1e6},
	{"kbit", inBits, 1e3},
	{"bit", inBits, 1},
	{"ns", nanosec, 1},
	{"us", nanosec, 1e3},
	{"ms", nanosec, 1e6},
}

// readNumber reads a number with its unit.
func readNumber(text string) (int64, unit, error) {
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			x, err := strconv.ParseFloat(rest, 64)
			if err == nil && x >= 0 && x*u.times < math.MaxInt64/2 {
				return int64(math.Round(x * u.times)), u.unit, nil
			}
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err == nil {
		return int64(n), plain, nil
	}
	b, err := tasks.ParseBytes(text)
	if err != nil {
		return 0, 0, &numberError{text}
	}
	return b, inBytes, nil
}

// numberError says what is no number.
type numberError struct{ text string }

func (e *numberError) Error() string {
	return strconv.Quote(clip(e.text)) + " is no number; write 8, 64KiB, 4MiB, 10gbit, 50us or all"
}

// writeNumber is the inverse of readNumber.
func writeNumber(n int64, u unit) string {
	switch {
	case n == Unknown:
		return "unknown"
	case u == inBytes:
		return tasks.FormatBytes(n)
	case u == truth:
		return map[bool]string{true: "yes", false: "no"}[n != 0]
	case u == ofShape || u == ofCollective:
		if names := namedValues(u); n > 0 && n <= int64(len(names)) {
			return names[n-1]
		}
		return "none"
	}
	best := ""
	for _, known := range units {
		if known.unit == u && n != 0 && n%int64(known.times) == 0 {
			if text := strconv.FormatInt(n/int64(known.times), 10) + known.suffix; best == "" || len(text) < len(best) {
				best = text
			}
		}
	}
	if best == "" {
		best = strconv.FormatInt(n, 10)
		if u == inBits {
			best += "bit"
		} else if u == nanosec {
			best += "ns"
		}
	}
	return best
}

// ParseNumber reads a number as rules have it: 8, 64KiB, 10gbit, 50us, all. Rates are bits a
// second, times nanoseconds.
func ParseNumber(text string) (int64, error) {
	n, _, err := readNumber(text)
	return n, err
}
