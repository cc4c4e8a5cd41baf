package main

import (
	"context"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Exact digests are the same for any number of ranks; sums in free order aren't.
func TestCompare(t *testing.T) {
	digests := map[string]map[string]bool{"free": {}, "exact": {}}
	for _, topo := range []string{"1x1", "1x2", "3x1", "2x2"} {
		err := planner.Run(t.Context(), topo, nil, func(ctx context.Context, c *planner.Comm) error {
			all, err := compare(ctx, c, 3000, 12, 1)
			if err == nil && c.Rank() == 0 {
				digests["free"][all[0].hash], digests["exact"][all[2].hash] = true, true
				if line := all[2].Against(&all[0].Way); all[2].Name != "exact" || !strings.HasPrefix(line, "median_ms=") {
					t.Error(line)
				}
			}
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", topo, err)
		}
	}
	if len(digests["exact"]) != 1 || len(digests["free"]) == 1 {
		t.Errorf("digests are %v", digests)
	}
}
