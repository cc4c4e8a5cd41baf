package rules

import "github.com/tierflow/tierflow/tasks"

// file is a parsed text, in its order.
type file struct {
	lexer    *lexer
	values   []*value
	lets     []*let
	items    []item // all, in the order of the text
	statutes []*statute
}

// find returns the named value; nil: there is none.
func (f *file) find(name string) *value {
	for _, v := range f.values {
		if v.name == name {
			return v
		}
	}
	return nil
}

// item is a line of a file, maybe a long one: a value, a condition or a rule.
type item struct {
	at, to  int // its beginning, and that of the next one
	value   *value
	let     *let
	statute *statute
}

// value is a named value as the text says it.
type value struct {
	name  string // without the $
	line  int
	index int // of the values of the file
	first int64
	unit  unit
	text  string // of first
}

// String returns the value's name in rules.
func (v *value) String() string { return "$" + v.name }

// let is a named condition or number.
type let struct {
	name string
	is   *expr
}

// statute is a rule as the text says it.
type statute struct {
	part  Part
	heads []head
	body  *body
}

// head is a collective with a rule.
type head struct {
	coll   tasks.Collective // 0: all
	differ bool             // only with blocks that differ
}

// body is one way to end: by conditions, or as a leaf.
type body struct {
	at     int
	arms   []arm // of if and elif
	orElse *body // nil: nothing is decided
	leaf   *Leaf // without arms
}

// arm is a condition with its body.
type arm struct {
	at   int
	when *expr
	then *body
}

// phrase is a piece of a reason: a text, or a number in its place.
type phrase struct {
	text string
	is   *expr // nil: text
}

// hole is a number of a plan that each request computes.
type hole struct {
	key string // of a choice, [taskKey] for by=; fs, w or eager
	at  int    // part of a choice: 2 the inner segment, 3 the number
	is  *expr
}

// operator is the operation of an expression.
type operator uint8

const (
	literal  operator = iota
	ask               // a parameter
	nameOf            // a named value
	standsIn          // a let
	call
	add
	sub
	mul
	div
	less
	atMost
	more
	atLeast
	equal
	unequal
	and
	or
	not
)

// Strengths of operators: a weaker operation inside another one stands in parentheses.
const (
	ofOr = iota + 1
	ofAnd
	ofNot
	ofComparison
	ofSum
	ofProduct
)

// operators describes each one: its sign in rules, its name in Go, how strongly it holds its operands
// together, its function of two numbers, and the outcomes of a comparison that holds.
var operators = [...]struct {
	sign, inGo string
	strength   int
	of         func(x, y int64) int64
	holds      outcome
}{
	add:     {"+", "Add", ofSum, Add, 0},
	sub:     {"-", "Sub", ofSum, Sub, 0},
	mul:     {"*", "Mul", ofProduct, Mul, 0},
	div:     {"/", "Div", ofProduct, Div, 0},
	less:    {"<", "Less", ofComparison, truthOf(Less), isLess},
	atMost:  {"<=", "AtMost", ofComparison, truthOf(AtMost), isLess | isEqual},
	more:    {">", "More", ofComparison, truthOf(More), isMore},
	atLeast: {">=", "AtLeast", ofComparison, truthOf(AtLeast), isMore | isEqual},
	equal:   {"=", "Equal", ofComparison, truthOf(Equal), isEqual},
	unequal: {"!=", "Unequal", ofComparison, truthOf(Unequal), isLess | isMore},
	and:     {"and", "&&", ofAnd, nil, 0},
	or:      {"or", "||", ofOr, nil, 0},
	not:     {"not", "!", ofNot, nil, 0},
}

// truthOf makes a number of a comparison: 1 or 0.
func truthOf(holds func(x, y int64) bool) func(x, y int64) int64 {
	return func(x, y int64) int64 { return Bool(holds(x, y)) }
}

// isComparison reports whether the operator compares two numbers.
func (o operator) isComparison() bool { return o >= less && o <= unequal }

// expr is a number or a condition.
type expr struct {
	op     operator
	at     int
	args   []*expr
	number int64  // of a literal
	text   string // of a literal, or the name of a function
	calls  function
	unit   unit
	param  Param
	value  *value
	let    *let
}

// walk goes through an expression, and through the named conditions in it.
func (e *expr) walk(f func(e *expr)) {
	f(e)
	if e.op == standsIn {
		e.let.is.walk(f)
	}
	for _, x := range e.args {
		x.walk(f)
	}
}

// each goes through the expressions of a body, and through those of named conditions in it.
func (b *body) each(f func(e *expr)) {
	if b.leaf != nil {
		for _, h := range b.leaf.holes {
			h.is.walk(f)
		}
		for _, r := range b.leaf.reason {
			if r.is != nil {
				r.is.walk(f)
			}
		}
	}
	for _, a := range b.arms {
		a.when.walk(f)
		a.then.each(f)
	}
	if b.orElse != nil {
		b.orElse.each(f)
	}
}

// isTruth reports whether it is a condition.
func (e *expr) isTruth() bool {
	switch {
	case e.op >= less:
		return true
	case e.op == ask:
		return parameters[e.param].unit == truth
	case e.op == standsIn:
		return e.let.is.isTruth()
	case e.op == call:
		return e.calls == pow2Of
	}
	return false
}

// unitOf returns the unit of its values, as far as it is known.
func (e *expr) unitOf() unit {
	switch e.op {
	case ask:
		return parameters[e.param].unit
	case nameOf:
		return e.value.unit
	case standsIn:
		return e.let.is.unitOf()
	case literal:
		return e.unit
	case add, sub, mul, div:
		return max(e.args[0].unitOf(), e.args[1].unitOf())
	case call:
		if e.calls == log2Of {
			return plain
		}
		return e.args[0].unitOf()
	}
	return truth
}

// function is a function of rules.
type function uint8

const (
	_ function = iota
	minOf
	maxOf
	nearOf
	packedOf
	log2Of
	pow2Of
	maxFunction
)

// functions describes each one: its names in rules and in Go, its number of operands and its values.
var functions = [maxFunction]struct {
	name, inGo string
	operands   int
	of         func(x [3]int64) int64
}{
	minOf:    {"min", "Min", 2, func(x [3]int64) int64 { return Min(x[0], x[1]) }},
	maxOf:    {"max", "Max", 2, func(x [3]int64) int64 { return Max(x[0], x[1]) }},
	nearOf:   {"near", "Near", 3, func(x [3]int64) int64 { return Near(x[0], x[1], x[2]) }},
	packedOf: {"packed", "Packed", 1, func(x [3]int64) int64 { return Packed(x[0]) }},
	log2Of:   {"log2", "Log2", 1, func(x [3]int64) int64 { return Log2(x[0]) }},
	pow2Of:   {"pow2", "Pow2", 1, func(x [3]int64) int64 { return Pow2(x[0]) }},
}

// findFunction returns the function of a name; 0 if there is none.
func findFunction(name string) function {
	for f := minOf; f < maxFunction; f++ {
		if functions[f].name == name {
			return f
		}
	}
	return 0
}
