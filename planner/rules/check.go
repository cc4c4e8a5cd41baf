package rules

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Finding is a mistake in rules: nobody can have meant it.
type Finding struct {
	Line, Column int
	Message      string
}

// Check lists leaves that no request reaches, and conditions that always or never hold in their place.
// Named values count as any number, since programs change them.
func (b *Base) Check() []Finding {
	c := &checker{base: b, seen: map[*expr]int{}, reached: map[*Leaf]bool{}}
	for c.part = range maxPart {
		for _, c.coll = range c.part.collectives() {
			c.statutes(b.file.statutes, start())
		}
	}
	c.report()
	return c.findings
}

// between bounds a number.
type between struct{ least, most int64 }

// known is the knowledge about a request on a way through the rules.
type known struct {
	params [maxParam]between
	others map[string]bool // conditions of more than a parameter and a number, by their text
}

// start returns the knowledge about all requests.
func start() known {
	k := known{others: map[string]bool{}}
	for p := range maxParam {
		k.params[p] = between{0, math.MaxInt64}
		if parameters[p].unit == truth {
			k.params[p].most = 1
		}
	}
	for _, p := range []Param{Ranks, Nodes, PerNode, Blocks, Parts, Shape, Asked} {
		k.params[p].least = 1
	}
	return k
}

// with returns the knowledge under a condition, or under its opposite. possible: it may be so.
func (k known) with(e *expr, holds bool) (next known, possible bool) {
	switch {
	case e.op == standsIn:
		return k.with(e.let.is, holds)
	case e.op == not:
		return k.with(e.args[0], !holds)
	case e.op == and && holds, e.op == or && !holds: // all of them
		next, possible = k, true
		for _, x := range e.args {
			if next, possible = next.with(x, holds); !possible {
				return next, false
			}
		}
		return next, true
	case e.op == and || e.op == or: // one of them; if only one is left, it is known
		var ways []known
		for _, x := range e.args {
			if one, may := k.with(x, holds); may {
				ways = append(ways, one)
			}
		}
		switch len(ways) {
		case 0:
			return k, false
		case 1:
			return ways[0], true
		}
		return k, true
	}
	return k.withComparison(e, holds)
}

// withComparison is with for a single comparison.
func (k known) withComparison(e *expr, holds bool) (known, bool) {
	p, op, number, plainly := asComparison(e)
	maybeUnknown := plainly && (p == Rate || p == Latency || p == Cores)
	if !plainly || maybeUnknown && !holds {
		text := write(e, 0)
		if before, is := k.others[text]; is {
			return k, before == holds
		}
		next := k
		next.others = maps.Clone(k.others)
		next.others[text] = holds
		return next, true
	}
	if !holds {
		op = opposite[op]
	}
	is := k.params[p]
	switch op {
	case less:
		is.most = min(is.most, number-1)
	case atMost:
		is.most = min(is.most, number)
	case more:
		if number == math.MaxInt64 {
			return k, false
		}
		is.least = max(is.least, number+1)
	case atLeast:
		is.least = max(is.least, number)
	case equal:
		is.least, is.most = max(is.least, number), min(is.most, number)
	case unequal:
		if is.least == number {
			is.least++
		}
		if is.most == number {
			is.most--
		}
	}
	k.params[p] = is
	return k, is.least <= is.most
}

// opposite are the negations of comparisons.
var opposite = map[operator]operator{less: atLeast, atLeast: less, more: atMost, atMost: more, equal: unequal, unequal: equal}

// mirrored are comparisons with their sides exchanged.
var mirrored = map[operator]operator{less: more, more: less, atMost: atLeast, atLeast: atMost, equal: equal, unequal: unequal}

// asComparison returns a comparison of a parameter with a number, if it is one.
func asComparison(e *expr) (p Param, op operator, number int64, is bool) {
	switch {
	case e.op == ask:
		return e.param, equal, 1, true
	case !e.op.isComparison():
		return 0, 0, 0, false
	case e.args[0].op == ask && e.args[1].op == literal:
		return e.args[0].param, e.op, e.args[1].number, true
	case e.args[1].op == ask && e.args[0].op == literal:
		return e.args[1].param, mirrored[e.op], e.args[0].number, true
	}
	return 0, 0, 0, false
}

// checker goes all ways through the rules, for one collective after the other.
type checker struct {
	base     *Base
	part     Part
	coll     tasks.Collective
	seen     map[*expr]int // bit 0: it may hold somewhere; bit 1: it may fail to
	reached  map[*Leaf]bool
	findings []Finding
	ways     int
}

// maxWays bounds the ways through rules: beyond it nothing more is found.
const maxWays = 1 << 16

// statutes goes through the rules from some on.
func (c *checker) statutes(all []*statute, k known) {
	for i, s := range all {
		if s.part != c.part {
			continue
		}
		for _, h := range s.heads {
			if h.coll != 0 && h.coll != c.coll {
				continue
			}
			rest := all[i+1:]
			if h.differ {
				differ := &expr{op: ask, param: Regular}
				if next, possible := k.with(differ, false); possible {
					c.body(s.body, next, func(k known) { c.statutes(rest, k) })
				}
				if next, possible := k.with(differ, true); possible {
					c.statutes(rest, next)
				}
				return
			}
			c.body(s.body, k, func(k known) { c.statutes(rest, k) })
			return
		}
	}
}

// body goes through a body. Requests that it leaves open go on at open.
func (c *checker) body(b *body, k known, open func(known)) {
	if c.ways++; c.ways > maxWays {
		return
	}
	if b.leaf != nil {
		c.reached[b.leaf] = true
		return
	}
	for _, a := range b.arms {
		yes, may := k.with(a.when, true)
		if may {
			c.seen[a.when] |= 1
			c.body(a.then, yes, open)
		}
		no, fails := k.with(a.when, false)
		if !fails {
			return
		}
		c.seen[a.when] |= 2
		k = no
	}
	if b.orElse != nil {
		c.body(b.orElse, k, open)
		return
	}
	open(k)
}

// report lists leaves and conditions that were not reached.
func (c *checker) report() {
	if c.ways > maxWays {
		return
	}
	for _, s := range c.base.file.statutes {
		c.reportUnreached(s.body)
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
}

// reportUnreached reports conditions and leaves of a body.
func (c *checker) reportUnreached(b *body) {
	if b.leaf != nil {
		if !c.reached[b.leaf] {
			c.add(b.at, "nothing comes here: what stands above decides all of it, otherwise than by %s", b.leaf)
		}
		return
	}
	for _, a := range b.arms {
		switch c.seen[a.when] {
		case 0:
			c.add(a.at, "nothing comes here: what stands above decides all of it, or contradicts %s", write(a.when, 0))
			continue
		case 1:
			c.add(a.when.at, "%s always holds here: what follows is never asked", write(a.when, 0))
		case 2:
			c.add(a.when.at, "%s never holds here: it contradicts itself or what stands above", write(a.when, 0))
			continue
		}
		c.reportUnreached(a.then)
	}
	if b.orElse != nil && (len(b.arms) == 0 || c.seen[b.arms[len(b.arms)-1].when]&2 != 0) {
		c.reportUnreached(b.orElse)
	}
}

func (c *checker) add(at int, format string, args ...any) {
	line, column := c.base.file.lexer.position(at)
	c.findings = append(c.findings, Finding{line, column, fmt.Sprintf(format, args...)})
}
