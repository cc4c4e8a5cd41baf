package tasks_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/tasks"
)

// A matrix of few pairs answers all questions as the one of all counts does.
func TestPairsAreAMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "ranks")
		rows, pairs := make([][]int, n), []tasks.Pair(nil)
		for from := range rows {
			for to := range n {
				count := max(0, rapid.IntRange(-9, 5).Draw(t, "count"))
				rows[from] = append(rows[from], count)
				if count > 0 || rapid.Bool().Draw(t, "empty") {
					pairs = append(pairs, tasks.Pair{From: from, To: to, Count: int64(count)})
				}
			}
		}
		want, err := tasks.NewMatrix(rows)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tasks.NewPairs(n, pairs)
		if err != nil {
			t.Fatal(err)
		}
		again, err := tasks.NewPairs(n, rapid.Permutation(pairs).Draw(t, "order"))
		if err != nil || again != got || got.IsZero() || got.Len() != n || got.Max() != want.Max() || got.Busiest() != want.Busiest() {
			t.Fatalf("%v of %d ranks, at most %d, busiest %d; want %v: %v", got, got.Len(), got.Max(), got.Busiest(), want, err)
		}
		for a := range n {
			for b := range n {
				if got.At(a, b) != want.At(a, b) || got.Given(a, b) != want.Given(a, b) || got.Gotten(a, b) != want.Gotten(a, b) {
					t.Fatalf("%v: %d gives %d %d elements, after %d, it gets them after %d", rows, a, b, got.At(a, b), got.Given(a, b), got.Gotten(a, b))
				}
			}
			if got.Gives(a) != want.Gives(a) || got.Gets(a) != want.Gets(a) || got.IsEven(a) != want.IsEven(a) {
				t.Fatalf("%v: %d gives %d, gets %d, is even: %v", rows, a, got.Gives(a), got.Gets(a), got.IsEven(a))
			}
		}
	})
}

// Few pairs of many ranks are no table of all: more ranks than NewMatrix takes.
func TestPairsOfManyRanks(t *testing.T) {
	const n = 100_000
	m, err := tasks.NewPairs(n, []tasks.Pair{{From: n - 1, To: 0, Count: 7}, {From: 0, To: n - 1, Count: 5}})
	if err != nil || m.Len() != n || m.At(n-1, 0) != 7 || m.Gets(n-1) != 5 || m.Max() != 7 || m.IsEven(0) || !m.IsEven(1) || m.GiversMost() != 1 {
		t.Errorf("%v: %v", m, err)
	}
}

func TestWrongPairs(t *testing.T) {
	for _, tc := range []struct {
		pairs []tasks.Pair
		want  string
	}{
		{[]tasks.Pair{{From: 0, To: 2, Count: 1}}, "count 1 from rank 0 to rank 2: counts are not negative, and ranks are 0 to 1"},
		{[]tasks.Pair{{From: -1, To: 1, Count: 1}}, "ranks are 0 to 1"},
		{[]tasks.Pair{{From: 0, To: 1, Count: -1}}, "not negative"},
		{[]tasks.Pair{{From: 0, To: 1, Count: 1}, {From: 0, To: 1, Count: 2}}, "rank 1 is there twice"},
		{[]tasks.Pair{{From: 0, To: 1, Count: math.MaxInt64}, {From: 1, To: 1, Count: 1}}, "2^63"},
	} {
		if _, err := tasks.NewPairs(2, tc.pairs); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got error %v, want one with %q", tc.pairs, err, tc.want)
		}
	}
}
