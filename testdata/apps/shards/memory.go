package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// measure takes steps of one mode, and prints how much memory they take at the most, MiB of the rank
// that takes most, beside the table's.
func measure(ctx context.Context, c *planner.Comm, mode string, sizes []int, turns int, out io.Writer) error {
	if err := planner.Barrier(ctx, c); err != nil { // ranks know each other
		return err
	}
	debug.FreeOSMemory()
	before, err := resident("VmRSS")
	if err != nil {
		return err
	}
	w, err := newWay(c, mode, sizes)
	if err != nil {
		return err
	}
	defer w.free()
	for range turns {
		if err := w.Take(ctx, c, true); err != nil {
			return err
		}
	}
	peak, err := resident("VmHWM")
	if err != nil {
		return err
	}
	if peak, err = planner.AllreduceValue(ctx, c, peak-before, tasks.Max); err != nil || c.Rank() != 0 {
		return err
	}
	want := table(mode, sizes, c.Size())
	fmt.Fprintf(out, "mode=%s ranks=%d peak_mib=%.1f table_mib=%.1f ratio=%.3f\n", mode, c.Size(), peak, want, peak/want)
	return nil
}

// table is what a mode should take, MiB.
func table(mode string, sizes []int, ranks int) float64 {
	n, most := 0.0, 0.0
	for _, size := range sizes {
		n, most = n+float64(size), max(most, float64(size))
	}
	p := float64(ranks)
	bytes := map[string]float64{
		"ddp":   16 * n,
		"zero1": (8 + 12/p) * n,
		"zero2": (4+12/p)*n + 2*4*most,
		"zero3": 16/p*n + 4*4*most, // two units of weights and of gradients
	}[mode]
	return bytes / (1 << 20)
}

// resident reads one of the system's figures of this process's memory, MiB.
func resident(key string) (mib float64, err error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("memory of this process: %w; only Linux tells", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), key+":"); found {
			_, err = fmt.Sscanf(strings.TrimSpace(text), "%g kB", &mib)
			return mib / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", key)
}
