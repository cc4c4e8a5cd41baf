package rules

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

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

func (p *parser) findLet(name string) *let {
	for _, l := range p.file.lets {
		if l.name == name {
			return l
		}
	}
	return nil
}
