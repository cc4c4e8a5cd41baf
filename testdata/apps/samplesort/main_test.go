package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// The parts of all ranks together are what one rank sorts.
func TestSort(t *testing.T) {
	for _, test := range []struct {
		topo  string
		count func(rank int) int
		keys  uint64
	}{
		{"2x2", func(int) int { return 5000 }, 1 << 40},
		{"3x1", func(rank int) int { return 3000 * rank }, 1 << 40}, // rank 0 has none
		{"1x4", func(rank int) int { return rank / 3 * 7 }, 1 << 40},
		{"2x2", func(int) int { return 1000 }, 3}, // keys that are equal
		{"2x1", func(int) int { return 0 }, 1},
		{"1x1", func(int) int { return 100 }, 10},
	} {
		err := planner.Run(t.Context(), test.topo, nil, func(ctx context.Context, c *planner.Comm) error {
			var want []record
			for r := range c.Size() {
				want = append(want, few(r, test.count(r), test.keys)...)
			}
			slices.SortFunc(want, order)
			mine := few(c.Rank(), test.count(c.Rank()), test.keys)
			got, first, err := sortAll(ctx, c, mine)
			if err != nil {
				return err
			}
			if first+len(got) > len(want) || !slices.Equal(got, want[first:][:len(got)]) {
				return fmt.Errorf("rank %d has %d records from %d on, not those of a serial sort", c.Rank(), len(got), first)
			}
			return check(ctx, c, mine, got)
		})
		if err != nil {
			t.Errorf("%s: %v", test.topo, err)
		}
	}
}

// few are records with few keys.
func few(rank, n int, keys uint64) []record {
	all := records(n, rank)
	for i := range all {
		all[i].Key %= keys
	}
	return all
}

// What is lost, doubled or out of order is an error on all ranks.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(rank int, part []record) []record{
		"lost":      func(rank int, part []record) []record { return part[rank/2:] },
		"swapped":   func(rank int, part []record) []record { part[3], part[4+rank] = part[4+rank], part[3]; return part },
		"exchanged": func(rank int, part []record) []record { part[0].Key += uint64(rank); return part },
		"elsewhere": func(rank int, part []record) []record { return records(len(part), 2-rank) },
	} {
		err := planner.Run(t.Context(), "1x3", nil, func(ctx context.Context, c *planner.Comm) error {
			mine := records(500, c.Rank())
			got, _, err := sortAll(ctx, c, mine)
			if err != nil {
				return err
			}
			if err := check(ctx, c, mine, spoil(c.Rank(), got)); err == nil {
				return fmt.Errorf("rank %d finds nothing wrong", c.Rank())
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
