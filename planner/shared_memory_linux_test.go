package planner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// sharedMemory returns the pages taken in all memory files of this process's ranks, bytes.
func sharedMemory(t *testing.T) (bytes int64) {
	t.Helper()
	const folder = "/proc/self/fd/"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var st syscall.Stat_t
		if name, _ := os.Readlink(folder + e.Name()); strings.HasPrefix(name, "/memfd:tierflow") && syscall.Stat(folder+e.Name(), &st) == nil {
			bytes += st.Blocks * 512
		}
	}
	return bytes
}

// The shared memory of a node goes with its ranks and the longest call, not with the number of
// calls and of their lengths: README's bound. TIERFLOW_TEST_LONG=1 makes 100,000 calls.
func TestSharedMemoryOfManyLengths(t *testing.T) {
	const ranks, longest, most = 4, 1 << 20, 32 << 20
	rounds := 100
	if os.Getenv("TIERFLOW_TEST_LONG") == "1" {
		rounds = 25_000
	}
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprintf("peer reads %v", reads), func(t *testing.T) {
			var o planner.Options
			raw.SeamsOf(&o).NoPeerReads = !reads
			comms := joinProcesses(t, ranks, ranks, &o)
			defer closeAll(t, comms)
			noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
				draw := rand.New(rand.NewPCG(1, 2)) // the same lengths on all ranks
				one, all := make([]byte, longest), make([]byte, longest)
				for range rounds {
					n := 1 + draw.IntN(longest)
					root := draw.IntN(ranks)
					err := planner.Allreduce(ctx, c, one[:n], all[:n], tasks.Max)
					if err == nil {
						err = planner.Bcast(ctx, c, one[:n], root)
					}
					if err == nil {
						err = planner.Reduce(ctx, c, one[:n], all[:n], tasks.Max, root)
					}
					if err == nil {
						err = planner.Allgather(ctx, c, one[:n/ranks], all[:n/ranks*ranks])
					}
					if err != nil {
						return fmt.Errorf("%d bytes: %w", n, err)
					}
				}
				return nil
			}))
			got := sharedMemory(t)
			t.Logf("%d calls of up to %d bytes on %d ranks took %d KiB", rounds*ranks, longest, ranks, got>>10)
			if got == 0 || got > most {
				t.Errorf("%d KiB of shared memory, want some and at most %d", got>>10, most>>10)
			}
		})
	}
}
