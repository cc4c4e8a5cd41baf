package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tierflow/tierflow/planner"
)

// Particles are where they must be while the threshold changes, and all ranks agree on it.
func TestParticles(t *testing.T) {
	for _, test := range []struct {
		topo  string
		ranks int
		settings
	}{
		{"4x2", 8, settings{particles: 2000, steps: 120, every: 2}},
		{"3x1", 3, settings{particles: 500, steps: 40, every: 3, small: 1 << 30}},
		{"1x4", 4, settings{particles: 1, steps: 20, every: 2, small: 5}},
		{"2x2", 4, settings{particles: 700, steps: 10, small: 100}}, // it stays
		{"1", 1, settings{particles: 50, steps: 10, every: 2}},
	} {
		holds := make([]string, test.ranks)
		err := planner.Run(t.Context(), test.topo, &planner.Options{Rules: "rules", Files: fstest.MapFS{"rules": {Data: []byte(rules)}}}, func(ctx context.Context, c *planner.Comm) error {
			ms, tuner, err := simulate(ctx, c, test.settings)
			if err != nil {
				return err
			}
			holds[c.Rank()] = tuner.Holds()
			if len(ms) != test.steps {
				return fmt.Errorf("times of %d steps", len(ms))
			}
			if v, err := c.Value("small"); err != nil || test.every == 0 && v != test.small {
				return fmt.Errorf("the threshold is %d in the end, %w", v, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", test.topo, err)
		}
		if len(slices.Compact(holds)) != 1 {
			t.Errorf("%s: thresholds of ranks are %v", test.topo, holds)
		}
	}
}

// What is lost or elsewhere is an error on all ranks.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(rank int, all []particle) []particle{
		"lost":      func(rank int, all []particle) []particle { return all[rank/2:] },
		"moved":     func(rank int, all []particle) []particle { all[0].X += uint64(rank); return all },
		"elsewhere": func(rank int, all []particle) []particle { return create(100, 2-rank, 3) },
	} {
		err := planner.Run(t.Context(), "1x3", nil, func(ctx context.Context, c *planner.Comm) error {
			mine := create(100, c.Rank(), c.Size())
			want := digest(mine, 0)
			if err := check(ctx, c, spoil(c.Rank(), mine), want); err == nil {
				return fmt.Errorf("rank %d finds nothing wrong", c.Rank())
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The program runs on goroutine ranks, too, and writes its curve.
func TestRun(t *testing.T) {
	var out strings.Builder
	curve := filepath.Join(t.TempDir(), "p.json")
	if err := run(t.Context(), []string{"-topo", "3x1", "-particles", "20", "-steps", "20", "-small", "9", "-curve", curve}, &out); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(curve); err != nil || !strings.Contains(string(text), "threshold 9B in the beginning") || !strings.Contains(out.String(), "tuner of $small: ") {
		t.Errorf("%v, it says %s", err, &out)
	}
	for _, args := range [][]string{{"-steps", "3"}, {"-topo", "x"}, {"-small", "-1"}} {
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
