package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Choice is the submodule for the tasks of a level or a kind, with its algorithm and parameters.
type Choice struct {
	Submodule string
	Algorithm string // empty: the submodule's only or first one
	Inner     int64  // the algorithm's own segment, bytes; 0: none
	N         int    // the algorithm's own number, such as a radix; 0: its default
}

// String prints submodule/algorithm/inner/number, without unset words at the end: an inner
// segment without an algorithm is adapt//32KiB, a number without an inner segment nbc/bruck//4.
func (c Choice) String() string {
	s := c.Submodule
	if c.Algorithm != "" || c.Inner != 0 || c.N != 0 {
		s += "/" + c.Algorithm
	}
	if c.Inner != 0 {
		s += "/" + FormatBytes(c.Inner)
	}
	if c.N != 0 {
		s += strings.Repeat("/", 3-strings.Count(s, "/")) + strconv.Itoa(c.N)
	}
	return s
}

// Plan holds the chosen parameters of a collective. The zero value chooses
// nothing: each zero field is left to whoever completes the plan.
type Plan struct {
	Shape   Shape
	Segment int64 // fs, bytes, of each block if there are blocks; [Whole] for one segment
	Window  int   // segments in flight per task kind and rank
	Order   Order // of combining data
	Eager   int64 // bytes, of alltoalls by adapt/pairwise: messages up to it leave at once, longer ones pairwise; 0: none
	choices []keyed
}

// Order is a plan's demand on the order of combining data.
type Order uint8

// The orders.
const (
	AnyOrder  Order = iota // as algorithms do it: the same bits whenever the plan and the layout are the same
	TreeOrder              // along the in-order binary tree over ranks, see [Split]: the same bits for every layout
)

// keyed is a choice for a level (key "i") or a task kind (key "ib").
type keyed struct {
	key string
	Choice
}

// Set chooses for a level, named by its symbol, or for one task kind: key is i,
// or ib. It returns a changed copy.
func (p Plan) Set(key string, c Choice) Plan {
	p.choices = slices.Clone(p.choices)
	at, found := p.search(key)
	if found {
		p.choices[at].Choice = c
	} else {
		p.choices = slices.Insert(p.choices, at, keyed{key, c})
	}
	return p
}

// Without takes back the choice under exactly this key. It returns a changed copy.
func (p Plan) Without(key string) Plan {
	p.choices = slices.DeleteFunc(slices.Clone(p.choices), func(k keyed) bool { return k.key == key })
	return p
}

// For is the choice for a task kind: its own, or else its level's.
func (p Plan) For(k Kind) (Choice, bool) {
	var level *Choice
	for i := range p.choices {
		c := &p.choices[i]
		if c.key[0] != k.Symbol {
			continue
		}
		if len(c.key) == 1 {
			level = &c.Choice
		} else if c.key[1:] == k.Op.row().Suffix {
			return c.Choice, true
		}
	}
	if level != nil {
		return *level, true
	}
	return Choice{}, false
}

// Keys lists the levels and kinds with a choice, sorted.
func (p Plan) Keys() []string {
	keys := make([]string, len(p.choices))
	for i, c := range p.choices {
		keys[i] = c.key
	}
	return keys
}

// Choice is the choice under exactly this key.
func (p Plan) Choice(key string) (Choice, bool) {
	at, found := p.search(key)
	if !found {
		return Choice{}, false
	}
	return p.choices[at].Choice, true
}

// search returns the place of a key among the choices, and whether it has one.
func (p Plan) search(key string) (at int, found bool) {
	return slices.BinarySearchFunc(p.choices, key, func(k keyed, key string) int { return cmp.Compare(k.key, key) })
}

// Over returns p with everything it leaves open taken from base. A level's choice in p hides
// base's choices for kinds of that level.
func (p Plan) Over(base Plan) Plan {
	p.Shape = cmp.Or(p.Shape, base.Shape)
	p.Segment = cmp.Or(p.Segment, base.Segment)
	p.Window = cmp.Or(p.Window, base.Window)
	p.Order = cmp.Or(p.Order, base.Order)
	p.Eager = cmp.Or(p.Eager, base.Eager)
	own := p
	for _, c := range base.choices {
		_, level := own.Choice(c.key[:1])
		_, same := own.Choice(c.key)
		if !level && !same {
			p = p.Set(c.key, c.Choice)
		}
	}
	return p
}

// Equal reports whether two plans choose the same.
func (p Plan) Equal(q Plan) bool {
	return p.Shape == q.Shape && p.Segment == q.Segment && p.Window == q.Window && p.String() == q.String()
}

// String prints the plan in the grammar of [ParsePlan]:
// shape=han,fs=256KiB,w=4,i=adapt/chain/32KiB,s=sm.
func (p Plan) String() string {
	var parts []string
	if p.Shape != 0 {
		parts = append(parts, "shape="+p.Shape.String())
	}
	if p.Segment != 0 {
		parts = append(parts, "fs="+FormatBytes(p.Segment))
	}
	if p.Window != 0 {
		parts = append(parts, fmt.Sprintf("w=%d", p.Window))
	}
	if p.Order == TreeOrder {
		parts = append(parts, "order=tree")
	}
	if p.Eager != 0 {
		parts = append(parts, "eager="+FormatBytes(p.Eager))
	}
	for _, c := range p.choices {
		parts = append(parts, c.key+"="+c.Choice.String())
	}
	return strings.Join(parts, ",")
}
