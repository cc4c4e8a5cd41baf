package tasks_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

func TestShapeNames(t *testing.T) {
	for _, s := range tasks.Shapes() {
		if p := tasktest.Plan(t, "shape="+s.String()); p.Shape != s {
			t.Errorf("shape %d is called %v, which is read as %d", s, s, p.Shape)
		}
	}
	if last := tasks.Shape(len(tasks.Shapes()) + 1).String(); !strings.HasPrefix(last, "Shape(") {
		t.Errorf("Shapes doesn't list %s", last)
	}
}

func TestPlanText(t *testing.T) {
	for _, tc := range []struct{ in, out string }{
		{"", ""},
		{" , ,", ""},
		{"shape=han,fs=256KiB,w=4,i=adapt/chain/32KiB,s=solo", "shape=han,fs=256KiB,w=4,i=adapt/chain/32KiB,s=solo"},
		{"s=sm, i=adapt , w=1,fs=65536,shape=flat", "shape=flat,fs=64KiB,w=1,i=adapt,s=sm"},
		{"fs=all", "fs=all"},
		{"w=1024", "w=1024"},
		{"w=4,w=nbc/ring", "w=4,w=nbc/ring"}, // a window, and the site level's choice
		{"w=nbc", "w=nbc"},
		{"wb=nbc,war=nbc,ib=x2.a_b-c", "ib=x2.a_b-c,war=nbc,wb=nbc"},
		{"i=adapt//32K", "i=adapt//32KiB"}, // the default algorithm with an inner segment
		{"i=adapt/chain/0", "i=adapt/chain"},
		{"i=adapt/", "i=adapt"},
		{"i=adapt/chain/all", "i=adapt/chain/all"},
		{"i=adapt,i=nbc,w=2,w=3", "w=3,i=nbc"}, // the last word wins
	} {
		p := tasktest.Plan(t, tc.in)
		if got := p.String(); got != tc.out {
			t.Errorf("%q is printed %q, want %q", tc.in, got, tc.out)
		}
		if again := tasktest.Plan(t, tc.out); !again.Equal(p) {
			t.Errorf("%q: read again it is %v", tc.in, again)
		}
	}
}

// TestPlanFor: a kind's own choice wins over its level's, whichever came first.
func TestPlanFor(t *testing.T) {
	p := tasktest.Plan(t, "ib=adapt/chain,i=nbc,s=sm,sr=solo,w=4,w=mpi")
	for _, tc := range []struct {
		symbol byte
		op     tasks.Collective
		want   string
	}{
		{'i', tasks.Bcast, "adapt/chain"},
		{'i', tasks.Reduce, "nbc"},
		{'s', tasks.Bcast, "sm"},
		{'s', tasks.Reduce, "solo"},
		{'w', tasks.Reduce, "mpi"},
		{'m', tasks.Reduce, ""},
	} {
		c, ok := p.For(tasks.Kind{Symbol: tc.symbol, Op: tc.op})
		if c.String() != tc.want || ok != (tc.want != "") {
			t.Errorf("%c %v: got %q, %v, want %q", tc.symbol, tc.op, c, ok, tc.want)
		}
	}
	if p.Window != 4 {
		t.Errorf("w=4 and w=mpi make a window of %d", p.Window)
	}
}

func TestPlanKeys(t *testing.T) {
	p := tasktest.Plan(t, "s=sm,ib=adapt,i=nbc/ring")
	if diff := cmp.Diff([]string{"i", "ib", "s"}, p.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	c, ok := p.Choice("i")
	if want := (tasks.Choice{Submodule: "nbc", Algorithm: "ring"}); c != want || !ok {
		t.Errorf("i: got %v, %v, want %v", c, ok, want)
	}
	if c, ok := p.Choice("sr"); ok {
		t.Errorf("sr has no choice of its own, got %v", c)
	}
}

// TestSetCopies: plans are values.
func TestSetCopies(t *testing.T) {
	p := tasktest.Plan(t, "i=adapt,s=sm")
	q := p.Set("i", tasks.Choice{Submodule: "nbc"}).Set("m", tasks.Choice{Submodule: "sm"})
	if got, want := p.String()+" "+q.String(), "i=adapt,s=sm i=nbc,m=sm,s=sm"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlanOver(t *testing.T) {
	for _, tc := range []struct{ name, over, base, want string }{
		{"nothing over something", "", "shape=han,fs=1KiB,w=2,i=adapt", "shape=han,fs=1KiB,w=2,i=adapt"},
		{"something over nothing", "shape=han,w=2", "", "shape=han,w=2"},
		{"field by field", "w=3,shape=flat", "shape=han,fs=1KiB,w=2", "shape=flat,fs=1KiB,w=3"},
		{"all fields", "shape=flat,fs=4KiB,w=3,order=tree,eager=1KiB", "shape=han,fs=1KiB,w=2,eager=2KiB", "shape=flat,fs=4KiB,w=3,order=tree,eager=1KiB"},
		{"level over level", "i=nbc", "i=adapt,s=sm", "i=nbc,s=sm"},
		{"level hides kinds", "i=nbc", "ib=adapt,ir=adapt,sb=sm", "i=nbc,sb=sm"},
		{"kind over kind, others stay", "ib=nbc", "ib=adapt,ir=adapt", "ib=nbc,ir=adapt"},
		{"kind over level", "ib=nbc", "i=adapt", "i=adapt,ib=nbc"},
		{"level and kind over kinds", "i=nbc,ib=mpi", "ib=adapt,ir=adapt", "i=nbc,ib=mpi"},
		{"the site level", "w=nbc", "w=5,wb=adapt", "w=5,w=nbc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, base := tasktest.Plan(t, tc.over), tasktest.Plan(t, tc.base)
			if got := p.Over(base).String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if p.String() != tasktest.Plan(t, tc.over).String() || base.String() != tasktest.Plan(t, tc.base).String() {
				t.Errorf("Over changed what it was given: %v, %v", p, base)
			}
		})
	}
}

// anyPlan draws a plan that the grammar can write.
func anyPlan(t *rapid.T) tasks.Plan {
	p := tasks.Plan{
		Shape:   rapid.SampledFrom(append(tasks.Shapes(), 0)).Draw(t, "shape"),
		Segment: rapid.OneOf(rapid.Int64Range(0, tasks.Whole), rapid.Just[int64](1<<20)).Draw(t, "fs"),
		Window:  rapid.IntRange(0, tasks.MaxSegments).Draw(t, "w"),
	}
	keys := rapid.SliceOf(rapid.StringMatching("[a-z](r|b|ar)?")).Draw(t, "keys")
	for _, key := range keys {
		p = p.Set(key, tasks.Choice{
			Submodule: rapid.StringMatching("[a-z][a-z0-9._-]*").Draw(t, "submodule"),
			Algorithm: rapid.StringMatching("[a-z0-9._-]*").Draw(t, "algorithm"),
			Inner:     rapid.Int64Range(0, tasks.Whole).Draw(t, "inner"),
		})
	}
	return p
}

func TestPlanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlan(t)
		back, err := tasks.ParsePlan(p.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", p, diff)
		}
	})
}

// TestOverIsFor: whoever asks a plan over another gets the upper's choice if it
// has one, else the lower's.
func TestOverIsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, base := anyPlan(t), anyPlan(t)
		kind := tasks.Kind{
			Symbol: byte(rapid.IntRange('a', 'z').Draw(t, "symbol")),
			Op:     rapid.SampledFrom([]tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce}).Draw(t, "op"),
		}
		want, ok := p.For(kind)
		if !ok {
			want, ok = base.For(kind)
		}
		if got, has := p.Over(base).For(kind); got != want || has != ok {
			t.Fatalf("%v of %v over %v: got %v, want %v", kind, p, base, got, want)
		}
	})
}
