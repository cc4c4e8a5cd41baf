package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

func TestSizes(t *testing.T) {
	for name, sizes := range map[string][]int{"resnet50": resnet50(), "uniform": uniform()} {
		total := 0
		for _, n := range sizes {
			total += n
		}
		if len(sizes) != 150 || total < 24_000_000 || total > 25_600_000 {
			t.Errorf("%s: %d tensors of %d elements", name, len(sizes), total)
		}
	}
}

// All ways run, and are printed.
func TestCompare(t *testing.T) {
	sizes := resnet50()
	for i := range sizes {
		sizes[i] = max(1, sizes[i]/1000)
	}
	var out bytes.Buffer
	err := planner.Run(t.Context(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		all, err := compare(ctx, c, sizes, 2, 0)
		if err == nil && c.Rank() == 0 {
			for _, w := range all {
				fmt.Fprintf(&out, "way=%s %s\n", w.Name, w.Against(all[0]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "views", "copies", "singles"} {
		if !strings.Contains(out.String(), "way="+name+" median_ms=") {
			t.Errorf("no %s in %s", name, out.String())
		}
	}
}
