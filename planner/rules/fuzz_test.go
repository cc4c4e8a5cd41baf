package rules_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// drawn is a request that may be any.
func drawn(rng *rand.Rand) *rules.Params {
	all := tasks.Requestable()
	p := &rules.Params{Coll: all[rng.IntN(len(all))]}
	for q, known := range rules.Parameters() {
		switch {
		case known.Truth:
			p.Set(rules.Param(q), int64(rng.IntN(2)))
		case rng.IntN(8) > 0:
			p.Set(rules.Param(q), rng.Int64N(1<<rng.IntN(32)))
		}
	}
	return p
}

// Whatever a text is: complaints name the file and a place in it. What is read decides the same
// once it is formatted, on all ways that a trace names.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default",
		"$a = 4KiB # x\nlet big = bytes > $a or not (pow2(nodes) and rate < 10gbit)\nalltoallv: if big then eager=$a; elif latency > 50us then (if root = 0 then w=2) else fs={near(bytes/4,1,$a)} because \"y\"",
		"all: shape=han,i=nbc/knomial//{min(nodes,8)}", "bcast", "$", "\"", "(((", "allreduce: if not not not balanced then w=2",
	} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		b, err := rules.Parse("f", text)
		if err != nil {
			if e, ok := errors.AsType[*rules.Error](err); !ok || e.Line < 1 || e.Column < 1 || e.File != "f" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := rules.Parse("f", b.Format())
		if err != nil {
			t.Fatalf("%q: formatted %q: %v", text, b.Format(), err)
		}
		if again.Format() != b.Format() {
			t.Fatalf("%q: formatted %q, again %q", text, b.Format(), again.Format())
		}
		b.Check()
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 8 {
			p := drawn(rng)
			if got, want := decided(again, p), decided(b, p); got != want {
				t.Fatalf("%q decides %s, formatted %s", text, want, got)
			}
			l, depth := b.Decide(p)
			if traced, steps := b.Trace(p); traced != l || len(steps) != depth {
				t.Fatalf("%q: decided %v after %d, traced %v after %d", text, l, depth, traced, len(steps))
			}
		}
	})
}
