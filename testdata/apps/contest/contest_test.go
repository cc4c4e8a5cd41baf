package contest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/testdata/apps/contest"
)

// Each way is first as often as the others, a turn warms up, and an error ends all.
func TestRun(t *testing.T) {
	err := planner.Run(t.Context(), "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		var order []string
		way := func(name string) *contest.Way {
			return &contest.Way{Name: name, Do: func(context.Context) error { order = append(order, name); return nil }}
		}
		ways := []*contest.Way{way("a"), way("b")}
		if err := contest.Run(ctx, c, 3, ways); err != nil {
			return err
		}
		if want := []string{"a", "b", "b", "a", "a", "b", "b", "a"}; !slices.Equal(order, want) || len(ways[0].Took) != 3 || len(ways[1].Took) != 3 {
			t.Errorf("order %v, %d and %d times", order, len(ways[0].Took), len(ways[1].Took))
		}
		broken := errors.New("broken")
		ways[1].Do = func(context.Context) error { return broken }
		if err := contest.Run(ctx, c, 1, ways); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the second way", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ratios are those of the turns, not of the medians.
func TestAgainst(t *testing.T) {
	a, b := contest.Way{Took: []float64{3, 1, 2}}, contest.Way{Took: []float64{6, 4, 2}}
	if got, want := b.Against(&a), "median_ms=4.000 ratio=2.000 quartiles=1.000–4.000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
