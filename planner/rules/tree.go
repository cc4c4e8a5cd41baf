package rules

import "github.com/tierflow/tierflow/tasks"

// file is what a text says, in its order.
type file struct {
	lexer    *lexer
	values   []*value
	lets     []*let
	items    []item // all, in the order of the text
	statutes []*statute
}

// item is a line of a file, maybe a long one: a value, a condition or a rule.
type item struct {
	at, to  int // where it begins, and the next one
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

// head is whom a rule is for.
type head struct {
	coll   tasks.Collective // 0: all
	differ bool             // of requests with blocks that differ only
}

// body is one way to end: by conditions, or as a leaf.
type body struct {
	at     int
	arms   []arm // of if and elif
	orElse *body // nil: nothing is decided
	leaf   *leaf // without arms
}

// arm is a condition with what follows from it.
type arm struct {
	at   int
	when *expr
	then *body
}

// leaf is a plan as the text says it.
type leaf struct {
	at      int
	isOpen  bool // default
	plan    tasks.Plan
	text    string // of the plan
	holes   []hole
	because string
	reason  []phrase // because, in pieces
}

// phrase is a piece of a reason: a text, or a number in its place.
type phrase struct {
	text string
	is   *expr // nil: text
}

// hole is a number of a plan that isn't known before it is asked for.
type hole struct {
	key string // of a choice, [taskKey] for by=; fs, w or eager
	at  int    // part of a choice: 2 the inner segment, 3 the number
	is  *expr
}

// operator is what an expression does with its operands.
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

// signsOf are the operators as they are written.
var signsOf = map[operator]string{
	add: "+", sub: "-", mul: "*", div: "/", less: "<", atMost: "<=", more: ">", atLeast: ">=", equal: "=", unequal: "!=", and: "and", or: "or", not: "not",
}

// isComparison reports whether it compares two numbers.
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

// walk goes through an expression, and through what its names stand for.
func (e *expr) walk(f func(e *expr)) {
	f(e)
	if e.op == standsIn {
		e.let.is.walk(f)
	}
	for _, x := range e.args {
		x.walk(f)
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
		return e.text == "pow2"
	}
	return false
}

// unitOf returns how its values are written, as far as that is known.
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

// function is what may be called.
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

// functions says how functions are called in rules and in Go, and how many operands they have.
var functions = [maxFunction]struct {
	name, inGo string
	operands   int
}{
	minOf:    {"min", "Min", 2},
	maxOf:    {"max", "Max", 2},
	nearOf:   {"near", "Near", 3},
	packedOf: {"packed", "Packed", 1},
	log2Of:   {"log2", "Log2", 1},
	pow2Of:   {"pow2", "Pow2", 1},
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
