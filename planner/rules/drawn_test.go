package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// term is a drawn number or condition: its text, and its value by other code than that of bases.
type term struct {
	text string
	is   func(p *rules.Params) int64
}

// writer draws rules.
type writer struct {
	rng *rand.Rand
}

// numbers are parameters of drawn comparisons, with their names.
var numbers = map[string]rules.Param{"bytes": rules.Bytes, "total": rules.Total, "nodes": rules.Nodes, "ranks": rules.Ranks, "root": rules.Root, "cores": rules.Cores}

// truths are parameters of drawn conditions, with their names.
var truths = map[string]rules.Param{"balanced": rules.Balanced, "ordered": rules.Ordered, "regular": rules.Regular}

// oneOf draws a name.
func oneOf(rng *rand.Rand, from map[string]rules.Param) (string, rules.Param) {
	names := make([]string, 0, len(from))
	for _, known := range rules.Parameters() {
		if _, has := from[known.Name]; has {
			names = append(names, known.Name)
		}
	}
	name := names[rng.IntN(len(names))]
	return name, from[name]
}

// number draws a number. Unknown operands make it unknown.
func (w *writer) number(depth int) term {
	if depth == 0 || w.rng.IntN(3) == 0 {
		if w.rng.IntN(2) == 0 {
			n := w.rng.Int64N(1 << w.rng.IntN(12))
			return term{fmt.Sprint(n), func(*rules.Params) int64 { return n }}
		}
		name, param := oneOf(w.rng, numbers)
		return term{name, func(p *rules.Params) int64 { return p.Get(param) }}
	}
	x, y := w.number(depth-1), w.number(depth-1)
	both := func(op func(a, b int64) int64) func(p *rules.Params) int64 {
		return func(p *rules.Params) int64 {
			a, b := x.is(p), y.is(p)
			if a == rules.Unknown || b == rules.Unknown {
				return rules.Unknown
			}
			return op(a, b)
		}
	}
	switch w.rng.IntN(4) {
	case 0:
		return term{"(" + x.text + " + " + y.text + ")", both(func(a, b int64) int64 { return a + b })}
	case 1:
		return term{"(" + x.text + " - " + y.text + ")", both(func(a, b int64) int64 { return a - b })}
	case 2:
		return term{"max(" + x.text + ", " + y.text + ")", both(func(a, b int64) int64 { return max(a, b) })}
	default:
		return term{"min(" + x.text + ", " + y.text + ")", both(func(a, b int64) int64 { return min(a, b) })}
	}
}

// condition draws a condition. A comparison with an unknown number does not hold.
func (w *writer) condition(depth int) term {
	if depth == 0 || w.rng.IntN(3) == 0 {
		if w.rng.IntN(4) == 0 {
			name, param := oneOf(w.rng, truths)
			return term{name, func(p *rules.Params) int64 { return rules.Bool(p.Get(param) == 1) }}
		}
		x, y := w.number(w.rng.IntN(3)), w.number(w.rng.IntN(2))
		sign := []string{"<", "<=", ">", ">=", "=", "!="}[w.rng.IntN(6)]
		return term{x.text + " " + sign + " " + y.text, func(p *rules.Params) int64 {
			a, b := x.is(p), y.is(p)
			holds := map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a == b, "!=": a != b}[sign]
			return rules.Bool(holds && a != rules.Unknown && b != rules.Unknown)
		}}
	}
	x, y := w.condition(depth-1), w.condition(depth-1)
	switch w.rng.IntN(3) {
	case 0:
		return term{"(" + x.text + " and " + y.text + ")", func(p *rules.Params) int64 { return x.is(p) & y.is(p) }}
	case 1:
		return term{"(" + x.text + " or " + y.text + ")", func(p *rules.Params) int64 { return x.is(p) | y.is(p) }}
	default:
		return term{"not (" + x.text + ")", func(p *rules.Params) int64 { return 1 - x.is(p) }}
	}
}

// statements draws rules for bcast, each with a window of its own and maybe an else. The value is the
// decided window; 0: none is.
func (w *writer) statements() term {
	var text strings.Builder
	var arms []func(p *rules.Params) (window int64, decides bool)
	window := int64(0)
	for range 1 + w.rng.IntN(3) {
		word := "bcast: if "
		for range 1 + w.rng.IntN(3) {
			window++
			when, mine := w.condition(2), window
			fmt.Fprintf(&text, "%s%s then w=%d", word, when.text, mine)
			arms = append(arms, func(p *rules.Params) (int64, bool) { return mine, when.is(p) == 1 })
			word = "\n\telif "
		}
		if w.rng.IntN(4) == 0 {
			window++
			mine := window
			fmt.Fprintf(&text, " else w=%d", mine)
			arms = append(arms, func(*rules.Params) (int64, bool) { return mine, true })
		}
		text.WriteByte('\n')
	}
	return term{text.String(), func(p *rules.Params) int64 {
		for _, arm := range arms {
			if n, decides := arm(p); decides {
				return n
			}
		}
		return 0
	}}
}

// request draws the parameters of a bcast. Some know the cores.
func (w *writer) request() *rules.Params {
	p := &rules.Params{Coll: tasks.Bcast}
	for _, q := range []rules.Param{rules.Nodes, rules.Ranks} {
		p.Set(q, 1+w.rng.Int64N(1<<w.rng.IntN(10)))
	}
	for _, q := range []rules.Param{rules.Bytes, rules.Total, rules.Root} {
		p.Set(q, w.rng.Int64N(1<<w.rng.IntN(12)))
	}
	if w.rng.IntN(2) == 0 {
		p.Set(rules.Cores, w.rng.Int64N(1<<12))
	}
	for _, q := range truths {
		p.Set(q, int64(w.rng.IntN(2)))
	}
	return p
}

// window is the decided one; 0: none is.
func window(b *rules.Base, p *rules.Params) int64 {
	l, _ := b.Decide(p)
	if l == nil {
		return 0
	}
	return int64(b.Plan(l, p).Window)
}

// Drawn rules decide as the conditions that they were drawn from, formatted too. Each comparison of a
// trace holds as it says, and its last one leads to the decision.
func TestDrawnRulesDecide(t *testing.T) {
	w := &writer{rand.New(rand.NewPCG(23, 1))}
	for range 400 {
		drawn := w.statements()
		b := parse(t, drawn.text)
		again := parse(t, b.Format())
		if again.Format() != b.Format() {
			t.Fatalf("formatted twice:\n%s\nonce:\n%s", again.Format(), b.Format())
		}
		for range 40 {
			p := w.request()
			want := drawn.is(p)
			if got, formatted := window(b, p), window(again, p); got != want || formatted != want {
				t.Fatalf("%s\ndecides %d, formatted %d, want %d", drawn.text, got, formatted, want)
			}
			decided, depth := b.Decide(p)
			traced, steps := b.Trace(p)
			if traced != decided || len(steps) != depth || traced != nil && steps != nil && steps[len(steps)-1].Line > traced.Line {
				t.Fatalf("%s\ndecided %v after %d comparisons, traced %v by %v", drawn.text, decided, depth, traced, steps)
			}
		}
	}
}

// Nothing comes to the leaves that Check finds, whatever is asked, and leaves with a way to them decide
// for their collective.
func TestDrawnFindings(t *testing.T) {
	w := &writer{rand.New(rand.NewPCG(23, 2))}
	found, reached := 0, 0
	for range 400 {
		drawn := w.statements()
		b := parse(t, drawn.text)
		dead := map[string]bool{}
		for _, f := range b.Check() {
			if strings.HasPrefix(f.Message, "nothing comes here") {
				dead[fmt.Sprint(f.Line, ":", f.Column)] = true
				found++
			}
		}
		for range 60 {
			l, _ := b.Decide(w.request())
			if l == nil {
				continue
			}
			reached++
			if dead[fmt.Sprint(l.Line, ":", l.Column)] {
				t.Fatalf("%s\n%s is decided, and found to be out of reach", drawn.text, l.Text)
			}
			if c := b.Collectives(l); len(c) != 1 || c[0] != tasks.Bcast {
				t.Fatalf("%s\n%s is for %v", drawn.text, l.Text, c)
			}
		}
	}
	if found == 0 || reached == 0 {
		t.Errorf("%d leaves out of reach, %d decisions", found, reached)
	}
}

// Values of names count in decisions and in plans as they are now. Traces and reasons tell each of them.
func TestNamesInTraces(t *testing.T) {
	b := parse(t, "$s = 1\n$small = 4KiB\nbcast: if bytes > $small + $s and $s < ranks then fs={$small * 2} because \"{$small} and {ranks}\"")
	p := asked(tasks.Bcast, map[rules.Param]int64{rules.Bytes: 8 << 10, rules.Ranks: 5})
	l, steps := b.Trace(p)
	if len(steps) != 2 || steps[0].Text != "bytes > $small (4KiB) + $s (1)" || steps[1].Text != "$s (1) < ranks" || steps[1].Given != "ranks 5" {
		t.Errorf("%+v", steps)
	}
	if l == nil || !l.Computes() || b.Plan(l, p).Segment != 8<<10 || b.Because(l, p) != "4KiB and 5" || b.Position(l) != "test.rules:3" {
		t.Errorf("%+v: %v because %s", l, b.Plan(l, p), b.Because(l, p))
	}
	if err := b.Set("small", 1<<20); err != nil {
		t.Fatal(err)
	}
	if l, steps := b.Trace(p); l != nil || steps[0].Holds || steps[0].Text != "bytes > $small (1MiB) + $s (1)" {
		t.Errorf("after Set: %v by %+v", l, steps)
	}
}

// What rules ask about, and the numbers of bytes in them, are found with the first lines.
func TestUsesAndBounds(t *testing.T) {
	b := parse(t, `$small = 3KiB
let many = ranks > 100
bcast: if many or bytes < 1KiB then w=2
bcast: if nodes < 7
	and bytes < $small then fs={total / 2} else default
reduce: if root = 0 then w=3
shape bcast: if latency < 5us then shape=flat`)
	var got []string
	for _, use := range b.Uses(tasks.Bcast) {
		got = append(got, fmt.Sprintf("%v:%d", use.Param, use.Line))
	}
	if want := "ranks:2 nodes:4 bytes:3 total:5"; strings.Join(got, " ") != want {
		t.Errorf("asks for %q, want %s", got, want)
	}
	if got := fmt.Sprint(b.Bounds(tasks.Bcast)); got != "[2 7 100 1024 3072]" {
		t.Errorf("bounds %s", got)
	}
	if line, does := b.DecidesParts(); line != 7 || !does || !b.Decides(tasks.Reduce) || b.Decides(tasks.Scan) {
		t.Errorf("parts from line %d on: %v", line, does)
	}
	err := b.CheckPlans(func(p tasks.Plan) error {
		if p.Window == 3 || p.Shape == tasks.Flat {
			return fmt.Errorf("%v is refused", p)
		}
		return nil
	})
	if err == nil || err.Error() != "test.rules:6:26: w=3 is refused\ntest.rules:7:36: shape=flat is refused" {
		t.Errorf("%v", err)
	}
}

// Rules without a condition have one way to their leaf.
func TestCollectivesOfOneLeaf(t *testing.T) {
	b := parse(t, "bcast: shape=flat")
	if c := b.Collectives(b.Leaves()[0]); len(c) != 1 || c[0] != tasks.Bcast {
		t.Errorf("for %v, want bcast", c)
	}
}
