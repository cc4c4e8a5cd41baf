package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// asked is what a request on some ranks is like.
func asked(c tasks.Collective, values map[rules.Param]int64) *rules.Params {
	p := &rules.Params{Coll: c}
	for q, v := range values {
		p.Set(q, v)
	}
	return p
}

// decided returns the plan, or "nothing", or "default".
func decided(b *rules.Base, p *rules.Params) string {
	switch l, _ := b.Decide(p); {
	case l == nil:
		return "nothing"
	case l.Default:
		return "default"
	default:
		return b.Plan(l, p).String()
	}
}

func parse(t *testing.T, text string) *rules.Base {
	t.Helper()
	b, err := rules.Parse("test.rules", text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecide(t *testing.T) {
	const paper = "bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default"
	const several = `
		$small = 32KiB
		let full = pernode >= 4 and balanced
		allreduce: if full and total > $small then shape=han,fs={near(bytes/4, 128KiB, 1MiB)},i=nbc/knomial//$small
		allreduce, reduce: if not (nodes = 1 or pow2(nodes)) then shape=flat; elif rate >= 10gbit then w=2 because "fast"
		alltoallv: eager=$small
		all: if bytes = 7 then (if root = 0 then w=7) else default
		bcast: w=9`
	for _, test := range []struct {
		text   string
		coll   tasks.Collective
		values map[rules.Param]int64
		want   string
	}{
		{paper, tasks.Bcast, map[rules.Param]int64{rules.Bytes: 4096}, "shape=flat,ib=adapt/binomial"},
		{paper, tasks.Bcast, map[rules.Param]int64{rules.Bytes: 4097}, "default"},
		{"bcast: if log2(bytes) = 12 then shape=flat", tasks.Bcast, map[rules.Param]int64{rules.Bytes: 4097}, "shape=flat"},
		{paper, tasks.Reduce, map[rules.Param]int64{rules.Bytes: 1}, "nothing"},
		{several, tasks.Allreduce, map[rules.Param]int64{rules.PerNode: 4, rules.Balanced: 1, rules.Total: 1 << 20, rules.Bytes: 1 << 20}, "shape=han,fs=256KiB,i=nbc/knomial//1024"},
		{several, tasks.Allreduce, map[rules.Param]int64{rules.PerNode: 4, rules.Balanced: 0, rules.Nodes: 3}, "shape=flat"},
		{several, tasks.Reduce, map[rules.Param]int64{rules.Nodes: 4, rules.Rate: 10e9}, "w=2"},
		{several, tasks.Reduce, map[rules.Param]int64{rules.Nodes: 4, rules.Rate: 1e9, rules.Bytes: 8}, "default"},
		{several, tasks.Reduce, map[rules.Param]int64{rules.Nodes: 4, rules.Bytes: 8}, "default"}, // the rate is not known
		{several, tasks.Alltoall, map[rules.Param]int64{rules.Regular: 0, rules.Bytes: 8}, "eager=32KiB"},
		{several, tasks.Alltoall, map[rules.Param]int64{rules.Regular: 1, rules.Bytes: 8}, "default"},
		{several, tasks.Bcast, map[rules.Param]int64{rules.Bytes: 7, rules.Root: 0}, "w=7"},
		{several, tasks.Bcast, map[rules.Param]int64{rules.Bytes: 7, rules.Root: 1}, "w=9"}, // no else: the next rule
		{several, tasks.Bcast, map[rules.Param]int64{rules.Bytes: 8}, "default"},
		{"bcast: if bytes < all then fs={max(all, 4)}", tasks.Bcast, map[rules.Param]int64{rules.Bytes: 8}, "fs=all"},
	} {
		b := parse(t, test.text)
		p := asked(test.coll, test.values)
		if got := decided(b, p); got != test.want {
			t.Errorf("%v %v: %s, want %s", test.coll, test.values, got, test.want)
		}
		again := parse(t, b.Format())
		if got := decided(again, p); got != test.want {
			t.Errorf("formatted, %v %v: %s, want %s\n%s", test.coll, test.values, got, test.want, b.Format())
		}
		if again.Format() != b.Format() {
			t.Errorf("formatted twice:\n%s\nonce:\n%s", again.Format(), b.Format())
		}
	}
}

// doubled is a rule with a condition of 2^n comparisons, by n names.
func doubled(n int) string {
	var text strings.Builder
	text.WriteString("let n0 = nodes < 2\n")
	for i := range n {
		fmt.Fprintf(&text, "let n%d = n%d and n%d\n", i+1, i, i)
	}
	fmt.Fprintf(&text, "bcast: if n%d then w=2", n)
	return text.String()
}

func TestErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"bcast: shape=flatt", `test.rules:1:8: plan "shape=flatt": unknown shape "flatt"; known are`},
		{"bcast shape=flat", `test.rules:1:7: "shape"; expected a colon after`},
		{"bast: shape=flat", `test.rules:1:1: "bast"; expected a collective: bcast,`},
		{"\nbcast: if bytes then w=2", "test.rules:2:11: a number; expected a condition"},
		{"bcast: if bytes <= 4XiB then w=2", `test.rules:1:20: "4XiB" is no number; write`},
		{"bcast: if bites <= 4 then w=2", `test.rules:1:11: "bites"; expected a number such as 64KiB, a $name, not, (, or one of balanced,`},
		{"bcast: if inplace then w=2", `"inplace" is nothing to decide by: each rank says`},
		{"bcast: if bytes <= $small then w=2", `test.rules:1:20: $small has no value`},
		{"$a = 1\n$a = 2", "test.rules:2:1: $a has a value already, in line 1"},
		{"bcast: if bytes < 4 w=2", `test.rules:1:21: "w"; expected then`},
		{"bcast: if bytes < 4 then w=2 else", "the end of the file; expected a plan such as"},
		{"bcast: if bytes < 10gbit then w=2", "bytes are compared with bits a second"},
		{"bcast: if not bytes then w=2", "a number after not"},
		{"bcast: if balanced < 2 then w=2", "a condition beside <"},
		{"bcast: if bytes < 4 and 3 then w=2", "a number beside and"},
		{"bcast: w=2,w=3", "w= is there twice"},
		{"bcast: shape={4}", "takes the place of a number"},
		{"bcast: fs={bytes", "the end of the file; expected } after the formula"},
		{"bcast: fs={balanced}", "a condition; expected a number"},
		{"bcast: fs=4KiB because fast", "expected a reason in quotation marks"},
		{"bcast: (fs=4KiB", "expected ) after the rule in parentheses"},
		{"bcast: if bytes < 4 then w=2; w=3", "expected elif or else after a semicolon"},
		{"bcast: if max(2, balanced) < 2 then w=2", "a condition in max"},
		{"let bytes = 4", `"bytes" has a meaning already`},
		{"bcast, bcast: w=2", `"bcast" is named twice`},
		{"barrierv: w=2", `"barrierv"; expected a collective`},
		{"bcast: w=2 \"", "a text without an end"},
		{"bcast: w=2 ?", `unexpected '?'`},
		{"bcast: if min(bytes) < 2 then w=2", "min has 2 operands"},
		{"bcast: if " + strings.Repeat("(", 100) + "bytes", "nested more than 64 deep"},
		{"bcast: if 1" + strings.Repeat(" + 1", 65) + " = 2 then w=1", "more than 64 operands"},
		{"shape bcast: w=2", "test.rules:1:14: w=; rules that begin with shape choose shape="},
		{"shape bcast: if shape = flat then shape=han", "test.rules:1:17: shape isn't known here; rules that begin with segments, task may ask for it"},
		{"bcast: if inside then w=2", "inside isn't known here; rules that begin with task may"},
		{"segments all: if shape = round then w=2", `"round"; expected one of flat, han,`},
		{"segments all: if shape < flat then w=2", "expected = or != after shape"},
		{"bcast: if fits(4) then w=2", "expected one of flat, han,"},
		{"task scans: by=sm", `"scans"; expected a collective: bcast,`},
		{`bcast: w=2 because "a {nodes b"`, "expected } after a number in a text"},
		{`bcast: w=2 because "a {balanced} b"`, "expected a number in braces in a text"},
		{strings.Repeat("#", rules.MaxBytes+1), "262145 bytes of rules; allowed are 262144"},
		{doubled(17), "test.rules:19:8: rules with more than 65536 comparisons, counting those of named conditions wherever these stand"},
	} {
		_, err := rules.Parse("test.rules", test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "test.rules:") {
			t.Errorf("%.60q: %v, want %s", test.text, err, test.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string // beginnings of findings, line:column: message
	}{
		{"bcast: if bytes <= 4KiB then shape=flat else default", nil},
		{"bcast: w=2\nbcast: w=3", []string{"2:8: nothing comes here: what stands above decides all of it, otherwise than by w=3"}},
		{"bcast: if bytes < 4 and bytes > 8 then w=2", []string{"1:11: bytes < 4 and bytes > 8 never holds"}},
		{"bcast: if bytes < 4KiB then w=2 elif bytes < 2KiB then w=3", []string{"1:38: bytes < 2KiB never holds"}},
		{"bcast: if bytes < 4 then w=2 elif bytes >= 4 then w=3 else w=4", []string{"1:35: bytes >= 4 always holds"}},
		{"bcast: if pow2(nodes) then w=2\nbcast: if pow2(nodes) then w=3", []string{"2:11: pow2(nodes) never holds"}},
		{"bcast: if rate < 1gbit then w=2 elif rate >= 1gbit then w=3 else w=4", nil}, // the rate may be unknown
		{"$a = 4\nbcast: if bytes < $a then w=2 elif bytes < 2 then w=3", nil},        // a program may change it
		{"all: w=2\nbcast: w=3", []string{"2:8: nothing comes here"}},
		{"alltoallv: w=2\nalltoall: w=3", nil},
		{"bcast: w=2\nreduce: w=3\ngather: w=4", nil}, // each is for its own collective
		{"alltoallv: w=2\nalltoall: if not regular then w=3", []string{"2:14: not regular never holds"}},
		{"bcast: if nodes < 1 then w=2", []string{"1:11: nodes < 1 never holds"}},
	} {
		var got []string
		for _, f := range parse(t, test.text).Check() {
			got = append(got, fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message))
		}
		ok := len(got) == len(test.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i], test.want[i])
		}
		if !ok {
			t.Errorf("%s:\n%q\nwant %q", test.text, got, test.want)
		}
	}
}

func TestTrace(t *testing.T) {
	b := parse(t, "$small = 32KiB\nbcast:\n\tif bytes <= $small then w=2\n\telif nodes >= 8 and balanced then shape=flat\n\telse default\n")
	p := asked(tasks.Bcast, map[rules.Param]int64{rules.Bytes: 64 << 10, rules.Nodes: 8, rules.Balanced: 1})
	l, steps := b.Trace(p)
	var got []string
	for _, s := range steps {
		got = append(got, fmt.Sprintf("%d: %v", s.Line, s))
	}
	want := []string{"3: bytes <= $small (32KiB) does not hold: bytes 64KiB", "4: nodes >= 8 holds: nodes 8", "4: balanced holds"}
	if l == nil || l.Line != 4 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v by %q, want %q", l, got, want)
	}
	if err := b.Set("small", 64<<10); err != nil {
		t.Fatal(err)
	}
	if got := decided(b, p); got != "w=2" {
		t.Errorf("after Set: %s", got)
	}
	if err := b.Set("smal", 1); err == nil || err.Error() != "$smal: no such value; test.rules has $small" {
		t.Error(err)
	}
	if err := b.Set("small", -1); err == nil {
		t.Error("a negative value was accepted")
	}
	c := b.Clone()
	if err := c.Set("small", 1); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Value("small"); v != 64<<10 || err != nil {
		t.Errorf("a clone's value came to its origin: %d, %v", v, err)
	}
}

func TestFormat(t *testing.T) {
	const text = "# top\n\n$a=4KiB # of a\n# why\nbcast,reduce:if bytes<$a and (nodes=1 or not balanced)then w=2 # few\n# many\nelif nodes*2-1>7 then (if root=0 then w=3 else default) else shape=flat,i=adapt/chain/{bytes/(2*nodes)} because \"so\"\nall: default # end\n#last\n"
	const want = `# top

$a = 4KiB # of a

# why
bcast, reduce:
	if bytes < $a and (nodes = 1 or not balanced) then w=2 # few
	# many
	elif nodes * 2 - 1 > 7 then (
		if root = 0 then w=3
		else default
	)
	else shape=flat,i=adapt/chain/{bytes/(2*nodes)} because "so"

all: default # end
#last
`
	b := parse(t, text)
	if got := b.Format(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if again := parse(t, want).Format(); again != want {
		t.Errorf("formatted twice:\n%s", again)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	b := parse(t, "$a = 1KiB\nbcast: if bytes < $a then w=2 elif nodes * bytes > 2 * ranks and pow2(nodes) then w=3 else default")
	p := asked(tasks.Bcast, map[rules.Param]int64{rules.Bytes: 1 << 20, rules.Nodes: 4, rules.Ranks: 8})
	if n := testing.AllocsPerRun(100, func() { b.Decide(p) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParts(t *testing.T) {
	b := parse(t, `shape all: if fits(lanes) then shape=lanes because "{nodes} nodes of {bytes * 2}"
segments bcast: if shape = han then fs={bytes / 4}
task reduce: if inside and collective != barrier then by=nbc/knomial//{nodes} else default`)
	p := asked(tasks.Reduce, map[rules.Param]int64{
		rules.Fits(tasks.Lanes): 1, rules.Nodes: 4, rules.Bytes: 4096, rules.Inside: 1, rules.Asked: int64(tasks.Allreduce), rules.Shape: int64(tasks.Han),
	})
	for part, want := range map[rules.Part]string{rules.WholePlan: "nothing", rules.ShapePart: "shape=lanes", rules.SegmentsPart: "nothing", rules.TaskPart: "i=nbc/knomial//4"} {
		if p.Part = part; decided(b, p) != want {
			t.Errorf("%v: %s, want %s", part, decided(b, p), want)
		}
	}
	p.Part = rules.TaskPart
	if l, _ := b.Decide(p); b.Choice(l, p).String() != "nbc/knomial//4" {
		t.Error(b.Choice(l, p))
	}
	p.Part = rules.ShapePart
	if l, _ := b.Decide(p); b.Because(l, p) != "4 nodes of 8KiB" {
		t.Error(b.Because(l, p))
	}
	p.Part, p.Coll = rules.SegmentsPart, tasks.Bcast
	if got := decided(b, p); got != "fs=1KiB" {
		t.Error(got)
	}
	if again := parse(t, b.Format()).Format(); again != b.Format() {
		t.Errorf("%s\nformatted twice\n%s", b.Format(), again)
	}
	if _, err := b.Source("p", "f"); err == nil || !strings.Contains(err.Error(), "test.rules:1:1: a rule for a part of plans") {
		t.Error(err)
	}
	for _, p := range rules.Parameters() { // what rules for whole plans may ask for
		is := p.Name
		if p.Name == rules.Asked.String() {
			is += " = bcast"
		} else if !p.Truth {
			is += " <= 1"
		}
		if _, err := rules.Parse("test.rules", "bcast: if "+is+" then w=2"); (err == nil) != (p.Name != rules.Shape.String() && p.Name != rules.Inside.String()) {
			t.Errorf("%s: %v", is, err)
		}
	}
}

// onceAsked knows the number of each parameter, and counts the questions.
type onceAsked struct{ asked int }

func (s *onceAsked) Value(p rules.Param) int64 { s.asked++; return 10 * int64(p) }

// A source is asked for what was not set, once.
func TestParamsAsk(t *testing.T) {
	from := &onceAsked{}
	p := rules.Params{From: from}
	p.Set(rules.Nodes, 7)
	for range 2 {
		if nodes, cores := p.Get(rules.Nodes), p.Get(rules.Cores); nodes != 7 || cores != 10*int64(rules.Cores) || from.asked != 1 {
			t.Errorf("%d nodes, %d cores, asked %d times", nodes, cores, from.asked)
		}
	}
	if v := new(rules.Params).Get(rules.Nodes); v != rules.Unknown {
		t.Errorf("without a source %d nodes", v)
	}
}
