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
	// Name is where the rules are from: a file's name, or an option.
	Name string
	file *file
	now  []atomic.Int64 // of the named values
	// roots are where deciding begins, by part and collective: a node, or as [node.yes] has it.
	roots  [maxPart][]int32
	nodes  []node
	leaves []Leaf
}

// node is a comparison, with where to go on: another node; or a leaf, as ^index; or nothing,
// which is undecided.
type node struct {
	yes, no int32
	way     way
	holds   outcome // of a parameter with a named value
	param   Param
	value   int32 // index of the named value
	// A parameter from least on, and larger by up to span, holds.
	least int64
	span  uint64
	is    *expr // what the text says
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

// outcomes are those with which comparisons hold.
var outcomes = map[operator]outcome{
	less: isLess, atMost: isLess | isEqual, more: isMore, atLeast: isMore | isEqual, equal: isEqual, unequal: isLess | isMore,
}

// undecided is where deciding ends without a leaf.
const undecided = math.MinInt32

// maxNodes bounds a base: conditions with names are compiled wherever they stand.
const maxNodes = 1 << 16

// Leaf is what rules decide.
type Leaf struct {
	Line, Column int
	// Text is the plan as the rules say it; "default" leaves it to whoever chooses without.
	Text    string
	Because string // as the rules say it; empty: nothing
	// Default says that the rules leave it to others.
	Default bool
	plan    tasks.Plan
	holes   []hole
	reason  []phrase // Because, with what is computed for it
}

// Parse compiles a text. name is what complaints call it.
func Parse(name, text string) (*Base, error) {
	f, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	b := &Base{Name: name, file: f, now: make([]atomic.Int64, len(f.values))}
	for i, v := range f.values {
		b.now[i].Store(v.first)
	}
	return b, b.compile()
}

// Text returns the text that the base was made of.
func (b *Base) Text() string { return b.file.lexer.text }

// Clone returns a base with named values of its own, which are as they are now.
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

// Value returns a named value. An unknown name is an error that lists those there are.
func (b *Base) Value(name string) (int64, error) {
	v, err := b.find(name)
	if err != nil {
		return 0, err
	}
	return b.now[v.index].Load(), nil
}

// Set changes a named value, which is 0 or more.
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
	for _, v := range b.file.values {
		if v.name == name {
			return v, nil
		}
	}
	if len(b.file.values) == 0 {
		return nil, fmt.Errorf("$%s: %s has no named values", name, b.Name)
	}
	return nil, fmt.Errorf("$%s: no such value; %s has $%s", name, b.Name, strings.Join(b.Names(), ", $"))
}

// compile makes nodes of the text, for each part of plans and each collective its own.
func (b *Base) compile() error {
	places := map[*leaf]int32{}
	for part := range maxPart {
		for _, c := range tasks.Collectives() {
			begin, err := b.statutes(part, c, places)
			if err != nil {
				return err
			}
			b.roots[part] = append(b.roots[part], begin)
		}
	}
	return nil
}

// statutes compiles the rules for a part and a collective. places are where leaves are.
func (b *Base) statutes(part Part, c tasks.Collective, places map[*leaf]int32) (begin int32, err error) {
	begin = undecided
	for _, s := range slices.Backward(b.file.statutes) {
		if s.part != part {
			continue
		}
		for _, h := range slices.Backward(s.heads) {
			if h.coll != 0 && h.coll != c {
				continue
			}
			next, err := b.body(s.body, begin, places)
			if err != nil {
				return 0, err
			}
			if h.differ {
				next = b.add(node{yes: begin, no: next, way: within, least: 1, param: Regular, is: &expr{op: ask, at: s.body.at, param: Regular}})
			}
			begin = next
		}
	}
	return begin, nil
}

// add adds a node and returns where it is.
func (b *Base) add(n node) int32 {
	b.nodes = append(b.nodes, n)
	return int32(len(b.nodes) - 1)
}

// body compiles a body. What it leaves open goes on at rest.
func (b *Base) body(is *body, rest int32, places map[*leaf]int32) (int32, error) {
	if is.leaf != nil {
		at, known := places[is.leaf]
		if !known {
			at = b.leaf(is.leaf)
			places[is.leaf] = at
		}
		return ^at, nil
	}
	open := rest // also of arms that don't decide: not their else, but the next rule
	if is.orElse != nil {
		var err error
		if rest, err = b.body(is.orElse, rest, places); err != nil {
			return 0, err
		}
	}
	for _, a := range slices.Backward(is.arms) {
		then, err := b.body(a.then, open, places)
		if err != nil {
			return 0, err
		}
		if rest, err = b.condition(a.when, then, rest, a.at); err != nil {
			return 0, err
		}
	}
	return rest, nil
}

// leaf adds a leaf and returns its index.
func (b *Base) leaf(l *leaf) int32 {
	line, column := b.file.lexer.position(l.at)
	text := l.text
	if l.isOpen {
		text = "default"
	}
	b.leaves = append(b.leaves, Leaf{
		Line: line, Column: column, Text: text, Because: l.because, Default: l.isOpen, plan: l.plan, holes: l.holes, reason: l.reason,
	})
	return int32(len(b.leaves) - 1)
}

// condition compiles a condition that goes on at yes or no.
func (b *Base) condition(e *expr, yes, no int32, at int) (int32, error) {
	if len(b.nodes) > maxNodes {
		return 0, b.file.lexer.errorf(at, "rules with more than %d comparisons, counting those of named conditions wherever these stand", maxNodes)
	}
	switch e.op {
	case and, or:
		next := yes
		if e.op == or {
			next = no
		}
		for _, x := range slices.Backward(e.args) {
			var err error
			if e.op == and {
				next, err = b.condition(x, next, no, at)
			} else {
				next, err = b.condition(x, yes, next, at)
			}
			if err != nil {
				return 0, err
			}
		}
		return next, nil
	case not:
		return b.condition(e.args[0], no, yes, at)
	case standsIn:
		return b.condition(e.let.is, yes, no, at)
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
		n.way, n.param, n.value, n.holds = withValue, e.args[0].param, int32(e.args[1].value.index), outcomes[e.op]
	}
	return b.add(n), nil
}

// bounds returns between which numbers the left side of a comparison holds, if these are some in
// a row. Unknown, the least number of all, is not among them.
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

// Decide returns what the rules decide, and after how many comparisons. nil: they leave it to
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
	return &b.leaves[^at], depth
}

// root is where deciding begins.
func (b *Base) root(p *Params) int32 {
	if i := int(p.Coll) - 1; p.Part < maxPart && i >= 0 && i < len(b.roots[p.Part]) {
		return b.roots[p.Part][i]
	}
	return undecided
}
