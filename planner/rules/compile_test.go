package rules_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// compiledFrom is what compiled_test.go is made of: the rules of the benchmark, and some of each kind.
const compiledFrom = fiveDeep + `
reduce, alltoallv: if bytes * 2 < total + 4KiB and not pow2(nodes) or rate < 10gbit then w=3,shape=flat elif root != 0 then default
all: if near(bytes, 8, 1KiB) = 64 then i=adapt/chain/4KiB
`

// Compiled rules decide as the rules do.
func TestSource(t *testing.T) {
	b := parse(t, compiledFrom)
	source, err := b.Source("rules_test", "compiled")
	if err != nil {
		t.Fatal(err)
	}
	dagtest.Golden(t, "compiled_test.go", []byte(source))
	rng := rand.New(rand.NewPCG(34, 3))
	known := 0
	for range 50_000 {
		p := drawn(rng)
		want := decided(b, p)
		got, is := compiled(p)
		if !is && want != "default" && want != "nothing" || is && got != want {
			t.Fatalf("%v: %q, %v, want %s", p, got, is, want)
		}
		if is {
			known++
		}
	}
	if known < 5000 {
		t.Errorf("only %d were decided", known)
	}
	if _, err := parse(t, "bcast: fs={bytes/2}").Source("p", "f"); err == nil || err.Error() != "test.rules:1:8: the plan has a number that is computed; only fixed plans are compiled" {
		t.Error(err)
	}
}

// BenchmarkCompiled is BenchmarkDecide with compiled rules.
func BenchmarkCompiled(b *testing.B) {
	p := &rules.Params{Coll: tasks.Bcast}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		fill(p, i)
		compiled(p)
		if i++; i == sets {
			i = 0
		}
	}
}
