package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tierflow/tierflow/tasks"
)

// Base is a compiled file of rules. Several goroutines may ask it.
type Base struct {
	// Name is the source of the rules: a file's name, or an option.
	Name string
	file *file
	now  []atomic.Int64 // of the named values
	// roots begin decisions, by part and collective: a node, or as [node.yes] has it.
	roots  [maxPart][]int32
	nodes  []node
	leaves []*Leaf
}

// node is a comparison with its two ways on: to another node, to a leaf as ^index, or to nothing as
// undecided.
type node struct {
	yes, no int32
	way     way
	holds   outcome // of a parameter with a named value
	param   Param
	value   int32 // index of the named value
	// A parameter from least on, and larger by up to span, holds.
	least int64
	span  uint64
	is    *expr // as in the text
}

// way is how a node's comparison is made.
type way uint8

const (
	within     way = iota // of a parameter with a number
	general               // of any expression
	withValue             // of a parameter with a named value
	powerOfTwo            // whether a parameter is one
)

// outcome is how two numbers compare.
type outcome uint8

const (
	isLess outcome = 1 << iota
	isEqual
	isMore
)

// undecided ends a decision without a leaf.
const undecided = math.MinInt32

// maxNodes bounds a base: conditions with names are compiled wherever they stand.
const maxNodes = 1 << 16

// Leaf is a decision of rules.
type Leaf struct {
	Line, Column int
	// Text is the plan as the rules say it; "default" leaves it to whoever chooses without.
	Text    string
	Because string // as the rules say it; empty: nothing
	// Default: the rules leave it to others.
	Default bool
	plan    tasks.Plan
	holes   []hole
	reason  []phrase // Because, in pieces
}

// Parse compiles a text. Complaints call it name.
func Parse(name, text string) (*Base, error) {
	f, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	b := &Base{Name: name, file: f, now: make([]atomic.Int64, len(f.values))}
	for i, v := range f.values {
		b.now[i].Store(v.first)
	}
	c := &compiler{Base: b, places: map[*Leaf]int32{}}
	for part := range maxPart {
		for _, coll := range tasks.Collectives() {
			b.roots[part] = append(b.roots[part], c.statutes(part, coll))
		}
	}
	return b, c.err
}

// Text returns the text of the rules.
func (b *Base) Text() string { return b.file.lexer.text }

// Clone returns a base with named values of its own, as they are now.
func (b *Base) Clone() *Base {
	c := *b
	c.now = make([]atomic.Int64, len(b.now))
	for i := range c.now {
		c.now[i].Store(b.now[i].Load())
	}
	return &c
}

// Names lists the named values, in the order of the text.
func (b *Base) Names() []string {
	all := make([]string, len(b.file.values))
	for i, v := range b.file.values {
		all[i] = v.name
	}
	return all
}

// Value returns a named value. An unknown name is an error with the known ones.
func (b *Base) Value(name string) (int64, error) {
	v, err := b.find(name)
	if err != nil {
		return 0, err
	}
	return b.now[v.index].Load(), nil
}

// Set changes a named value, to 0 or more.
func (b *Base) Set(name string, to int64) error {
	v, err := b.find(name)
	if err != nil {
		return err
	}
	if to < 0 {
		return fmt.Errorf("$%s = %d; allowed are 0 and more", name, to)
	}
	b.now[v.index].Store(to)
	return nil
}

func (b *Base) find(name string) (*value, error) {
	if v := b.file.find(name); v != nil {
		return v, nil
	}
	if len(b.file.values) == 0 {
		return nil, fmt.Errorf("$%s: %s has no named values", name, b.Name)
	}
	return nil, fmt.Errorf("$%s: no such value; %s has $%s", name, b.Name, strings.Join(b.Names(), ", $"))
}

// compiler makes nodes of a text, for each part of plans and each collective its own.
type compiler struct {
	*Base
	places map[*Leaf]int32 // indexes of leaves
	err    error           // too many nodes
}

// statutes compiles the rules for a part and a collective.
func (c *compiler) statutes(part Part, coll tasks.Collective) (begin int32) {
	begin = undecided
	for _, s := range slices.Backward(c.file.statutes) {
		if s.part != part {
			continue
		}
		for _, h := range slices.Backward(s.heads) {
			if h.coll != 0 && h.coll != coll {
				continue
			}
			next := c.body(s.body, begin)
			if h.differ {
				next = c.add(node{yes: begin, no: next, way: within, least: 1, param: Regular, is: &expr{op: ask, at: s.body.at, param: Regular}})
			}
			begin = next
		}
	}
	return begin
}

// add adds a node and returns its index.
func (c *compiler) add(n node) int32 {
	c.nodes = append(c.nodes, n)
	return int32(len(c.nodes) - 1)
}

// body compiles a body. Requests that it leaves open go on at rest.
func (c *compiler) body(is *body, rest int32) int32 {
	if is.leaf != nil {
		at, known := c.places[is.leaf]
		if !known {
			at = int32(len(c.leaves))
			c.leaves, c.places[is.leaf] = append(c.leaves, is.leaf), at
		}
		return ^at
	}
	open := rest // for arms without a decision: not their else, but the next rule
	if is.orElse != nil {
		rest = c.body(is.orElse, rest)
	}
	for _, a := range slices.Backward(is.arms) {
		rest = c.condition(a.when, c.body(a.then, open), rest, a.at)
	}
	return rest
}

// condition compiles a condition of an arm. It goes on at yes or no.
func (c *compiler) condition(e *expr, yes, no int32, arm int) int32 {
	if len(c.nodes) > maxNodes && c.err == nil {
		c.err = c.file.lexer.errorf(arm, "rules with more than %d comparisons, counting those of named conditions wherever these stand", maxNodes)
	}
	if c.err != nil {
		return no
	}
	switch e.op {
	case and:
		for _, x := range slices.Backward(e.args) {
			yes = c.condition(x, yes, no, arm)
		}
		return yes
	case or:
		for _, x := range slices.Backward(e.args) {
			no = c.condition(x, yes, no, arm)
		}
		return no
	case not:
		return c.condition(e.args[0], no, yes, arm)
	case standsIn:
		return c.condition(e.let.is, yes, no, arm)
	}
	n := node{yes: yes, no: no, is: e, way: general}
	switch {
	case e.op == ask:
		n.way, n.param, n.least = within, e.param, 1
	case e.op == call && e.calls == pow2Of && e.args[0].op == ask:
		n.way, n.param = powerOfTwo, e.args[0].param
	case e.op.isComparison() && e.args[0].op == ask && e.args[1].op == literal:
		least, most, is := bounds(e.op, e.args[1].number)
		if is {
			n.way, n.param, n.least, n.span = within, e.args[0].param, least, uint64(most)-uint64(least)
		}
	case e.op.isComparison() && e.args[0].op == ask && e.args[1].op == nameOf:
		n.way, n.param, n.value, n.holds = withValue, e.args[0].param, int32(e.args[1].value.index), operators[e.op].holds
	}
	return c.add(n)
}

// bounds returns the least and the largest number on the left side for which a comparison holds, if all
// between them do. Unknown, the least number of all, is not among them.
func bounds(op operator, right int64) (least, most int64, is bool) {
	least, most = Unknown+1, math.MaxInt64
	switch op {
	case equal:
		least, most = right, right
	case less:
		most = right - 1
	case atMost:
		most = right
	case more:
		least = right + 1
	case atLeast:
		least = right
	default:
		return 0, 0, false
	}
	return least, most, least <= most && right > Unknown && right < math.MaxInt64
}

// Decide returns the decision of the rules, and the number of comparisons. nil: they leave it to
// others without saying so. It allocates nothing and takes no lock.
func (b *Base) Decide(p *Params) (l *Leaf, depth int) {
	var at int32
	for at = b.root(p); at >= 0; depth++ {
		n := &b.nodes[at]
		holds := false
		if n.way == within {
			holds = uint64(p.Get(n.param))-uint64(n.least) <= n.span
		} else {
			holds = b.holds(n, p)
		}
		yes, no := n.yes, n.no
		if at = no; holds { // no jump: the processor would guess wrong
			at = yes
		}
	}
	if at == undecided {
		return nil, depth
	}
	return b.leaves[^at], depth
}

// root returns the beginning of a decision.
func (b *Base) root(p *Params) int32 {
	if i := int(p.Coll) - 1; p.Part < maxPart && i >= 0 && i < len(b.roots[p.Part]) {
		return b.roots[p.Part][i]
	}
	return undecided
}
