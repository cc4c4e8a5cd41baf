package rules

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// condition reads a condition.
func (p *parser) condition() *expr {
	e := p.either()
	p.wantTruth(e, "a number")
	return e
}

// wantTruth complains of a number in place of a condition.
func (p *parser) wantTruth(e *expr, found string) {
	if !e.isTruth() {
		p.fail(e.at, "%s; expected a condition, such as bytes <= 4KiB", found)
	}
}

// wantNumber complains of a condition in place of a number.
func (p *parser) wantNumber(e *expr, found string) {
	if e.isTruth() {
		p.fail(e.at, "%s; expected a number", found)
	}
}

// either reads conditions with or between them.
func (p *parser) either() *expr {
	return p.readJoined(or, func() *expr { return p.readJoined(and, p.negation) })
}

// readJoined reads the conditions joined by one operator.
func (p *parser) readJoined(op operator, read func() *expr) *expr {
	e := read()
	for p.accept(operators[op].sign) {
		f := read()
		p.wantTruth(e, "a number beside "+operators[op].sign)
		p.wantTruth(f, "a number beside "+operators[op].sign)
		if e.op == op {
			e.args = append(e.args, f)
		} else {
			e = &expr{op: op, at: e.at, args: []*expr{e, f}}
		}
	}
	return e
}

// negation reads a condition, maybe with not before it.
func (p *parser) negation() *expr {
	t := p.peek()
	if !p.accept("not") {
		return p.comparison()
	}
	defer p.descend(t.at)()
	e := p.negation()
	p.wantTruth(e, "a number after not")
	return &expr{op: not, at: t.at, args: []*expr{e}}
}

// comparison reads two numbers with a sign between them, or an operand alone.
func (p *parser) comparison() *expr {
	left := p.sum()
	t := p.peek()
	if t.text == "==" {
		t.text = "="
	}
	for op := less; op <= unequal; op++ {
		if t.kind != symbol || t.text != operators[op].sign {
			continue
		}
		p.has = false
		right := p.sum()
		p.wantNumber(left, "a condition beside "+t.text)
		p.wantNumber(right, "a condition beside "+t.text)
		if a, b := left.unitOf(), right.unitOf(); a != b && a != plain && b != plain {
			p.fail(t.at, "%s are compared with %s", unitNames[a], unitNames[b])
		}
		return &expr{op: op, at: left.at, args: []*expr{left, right}}
	}
	return left
}

// unitNames name units in complaints.
var unitNames = map[unit]string{plain: "numbers", inBytes: "bytes", inBits: "bits a second", nanosec: "times", truth: "conditions", ofShape: "shapes", ofCollective: "collectives"}

// sum reads products joined by + and -.
func (p *parser) sum() *expr { return p.chain(p.product, add, sub) }

// product reads operands joined by * and /.
func (p *parser) product() *expr { return p.chain(p.operand, mul, div) }

// chain reads operands joined by some operators, from left to right.
func (p *parser) chain(read func() *expr, ops ...operator) *expr {
	e := read()
	for n := 0; ; n++ {
		t := p.peek()
		i := slices.IndexFunc(ops, func(o operator) bool { return t.kind == symbol && t.text == operators[o].sign })
		if i < 0 {
			return e
		}
		if n == maxDepth {
			p.fail(t.at, "more than %d operands", maxDepth)
		}
		p.has = false
		f := read()
		p.wantNumber(e, "a condition beside "+t.text)
		p.wantNumber(f, "a condition beside "+t.text)
		e = &expr{op: ops[i], at: e.at, args: []*expr{e, f}}
	}
}

// operand reads a number, a parameter, a name, a call, or something in parentheses.
func (p *parser) operand() *expr {
	t := p.take()
	e := &expr{at: t.at, text: t.text}
	param, isParam := findParam(t.text)
	switch {
	case t.kind == number || t.text == "all" && t.kind == word:
		e.number, e.unit = p.number(t)
	case t.kind == named:
		if e.op, e.value = nameOf, p.file.find(t.text[1:]); e.value == nil {
			e.op = literal
			p.fail(t.at, "%s has no value; write a line such as %s = 32KiB before", t.text, t.text)
		}
	case t.kind == symbol && t.text == "(":
		defer p.descend(t.at)()
		e = p.either()
		p.expect(")", ") or an operator")
	case t.kind != word:
		p.failUnknown(t)
	case findFunction(t.text) > 0:
		e.op, e.calls = call, findFunction(t.text)
		p.operands(e)
	case t.text == "fits":
		p.fits(e)
	case isParam:
		e.op, e.param = ask, param
		if u := parameters[param].unit; u == ofShape || u == ofCollective {
			return p.byName(e, u)
		}
	default:
		if e.op, e.let = standsIn, p.findLet(t.text); e.let == nil {
			e.op = literal
			p.failUnknown(t)
		}
	}
	return e
}

// number returns a token's number and its unit.
func (p *parser) number(t token) (int64, unit) {
	n, u, err := readNumber(t.text)
	if err != nil {
		p.fail(t.at, "%s", err)
	}
	return n, u
}

// failUnknown complains of a token in place of an operand.
func (p *parser) failUnknown(t token) {
	if why := withheld[t.text]; why != "" {
		p.fail(t.at, "%q is nothing to decide by: %s", t.text, why)
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
	p.fail(t.at, "%s; expected a number such as 64KiB, a $name, not, (, or one of %s", t.describe(), list(known))
}

// operands reads those of a function.
func (p *parser) operands(e *expr) {
	defer p.descend(e.at)()
	p.expect("(", "( after "+e.text)
	count := functions[e.calls].operands
	for i := range count {
		if i > 0 {
			p.expect(",", "a comma: "+e.text+" has "+strconv.Itoa(count)+" operands")
		}
		x := p.sum()
		p.wantNumber(x, "a condition in "+e.text)
		e.args = append(e.args, x)
	}
	p.expect(")", ") after the operands of "+e.text)
}

// fits reads the shape after fits.
func (p *parser) fits(e *expr) {
	p.expect("(", "( after fits")
	n, _ := p.name(ofShape)
	e.op, e.param = ask, Fits(tasks.Shape(n))
	p.expect(")", ") after the shape")
}

// byName reads the name beside a parameter with names for values.
func (p *parser) byName(e *expr, u unit) *expr {
	op := equal
	switch {
	case p.accept("!="):
		op = unequal
	case !p.accept("=") && !p.accept("=="):
		t := p.peek()
		p.fail(t.at, "%s; expected = or != after %v", t.describe(), e.param)
	}
	n, t := p.name(u)
	value := &expr{at: t.at, number: n, text: t.text, unit: u}
	return &expr{op: op, at: e.at, args: []*expr{e, value}}
}

// name reads the name of a value, from 1.
func (p *parser) name(u unit) (n int64, t token) {
	t = p.take()
	names := namedValues(u)
	i := slices.Index(names, t.text)
	if i < 0 || t.kind != word {
		p.fail(t.at, "%s; expected one of %s", t.describe(), strings.Join(names, ", "))
	}
	return int64(i + 1), t
}

// findLet returns the named condition; nil: there is none.
func (p *parser) findLet(name string) *let {
	for _, l := range p.file.lets {
		if l.name == name {
			return l
		}
	}
	return nil
}
