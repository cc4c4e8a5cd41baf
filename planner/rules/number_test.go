package rules_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// Sums and products of numbers from 0 on are exact, or the largest number if they are larger.
func TestLargeNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 3))
	largest := big.NewInt(math.MaxInt64)
	for range 10_000 {
		x, y := rng.Int64()>>rng.IntN(63), rng.Int64()>>rng.IntN(63)
		for name, test := range map[string]struct {
			got  int64
			want *big.Int
		}{
			"+": {rules.Add(x, y), new(big.Int).Add(big.NewInt(x), big.NewInt(y))},
			"*": {rules.Mul(x, y), new(big.Int).Mul(big.NewInt(x), big.NewInt(y))},
		} {
			if test.want.Cmp(largest) > 0 {
				test.want = largest
			}
			if test.want.Cmp(big.NewInt(test.got)) != 0 {
				t.Fatalf("%d %s %d = %d, want %v", x, name, y, test.got, test.want)
			}
		}
		if y > 0 && rules.Div(x, y) != x/y || rules.Div(x, 0) != math.MaxInt64 || rules.Sub(x, y) != x-y {
			t.Fatalf("%d and %d: quotient %d, difference %d", x, y, rules.Div(x, y), rules.Sub(x, y))
		}
		if n := rules.Log2(x); x > 0 && (1<<n > x || n < 62 && 1<<(n+1) <= x) {
			t.Fatalf("log2(%d) = %d", x, n)
		}
	}
}

// An unknown number makes all that is computed of it unknown, and no comparison with it holds.
func TestUnknownNumbers(t *testing.T) {
	const u = rules.Unknown
	for name, n := range map[string]int64{
		"add": rules.Add(u, 1), "sub": rules.Sub(1, u), "mul": rules.Mul(u, 0), "div": rules.Div(u, 0), "min": rules.Min(u, 1), "max": rules.Max(u, 1),
		"near": rules.Near(8, u, 9), "packed": rules.Packed(u), "log2": rules.Log2(u), "pow2": rules.Pow2(u),
	} {
		if n != u {
			t.Errorf("%s of an unknown number: %d", name, n)
		}
	}
	for name, holds := range map[string]bool{
		"<": rules.Less(u, 1), "<=": rules.AtMost(u, u), ">": rules.More(1, u), ">=": rules.AtLeast(u, u), "=": rules.Equal(u, u), "!=": rules.Unequal(u, 1),
	} {
		if holds {
			t.Errorf("%s holds for an unknown number", name)
		}
	}
}

// near doubles its least number up to the first one and to the last.
func TestNear(t *testing.T) {
	for _, test := range []struct{ n, least, most, want int64 }{
		{100, 8, 64, 64}, {63, 8, 64, 32}, {64, 8, 64, 64}, {1, 8, 64, 8}, {1 << 40, 8, 64, 64}, {100, 0, 64, 0}, {100, 64, 8, 64},
	} {
		if got := rules.Near(test.n, test.least, test.most); got != test.want {
			t.Errorf("near(%d, %d, %d) = %d, want %d", test.n, test.least, test.most, got, test.want)
		}
	}
}

// A number is written as it was read, with a unit that has no smaller words.
func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{"8": 8, "64KiB": 64 << 10, "10gbit": 10e9, "2.5gbit": 25e8, "50us": 50_000, "3ns": 3, "0ms": 0, "7bit": 7, "all": tasks.Whole} {
		if n, err := rules.ParseNumber(text); n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5KiB", "1e3x", "5kbits", "99999999999999999999", "1e30gbit"} {
		if n, err := rules.ParseNumber(text); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
	b := parse(t, "bcast: if rate > 1bit or latency > 1ns or bytes > 1 or nodes > 3 or collective = barrier then w=2")
	p := asked(tasks.Bcast, map[rules.Param]int64{rules.Rate: 0, rules.Latency: 0, rules.Bytes: 1, rules.Nodes: 2, rules.Asked: int64(tasks.Bcast)})
	_, steps := b.Trace(p)
	for i, want := range []string{"rate 0bit", "latency 0ns", "bytes 1B", "nodes 2", "collective bcast"} {
		if i >= len(steps) || steps[i].Given != want {
			t.Errorf("step %d of %+v, want %s", i, steps, want)
		}
	}
	for rate, want := range map[int64]string{2_500_000_000: "rate 2500mbit", 10_000_000_000: "rate 10gbit", 1234: "rate 1234bit", rules.Unknown: "rate unknown"} {
		p := asked(tasks.Bcast, map[rules.Param]int64{rules.Rate: rate})
		if _, steps := b.Trace(p); steps[0].Given != want {
			t.Errorf("%s, want %s", steps[0].Given, want)
		}
	}
}
