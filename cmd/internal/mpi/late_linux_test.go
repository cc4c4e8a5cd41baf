package mpi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/internal/watch"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// While an MPI program runs, ps says who waits for whom, and metrics count its calls.
func TestSeenFromOutside(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		dir, err := os.MkdirTemp("", "mpi") // a socket's name is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		t.Setenv("TIERFLOW_DOOR", filepath.Join(dir, "doors"))
		prog := mpi.program(t, "late")
		ended := make(chan string, 1)
		go func() {
			out, err := mpi.under(t, shim, nil, prog, filepath.Join(dir, "come"))
			ended <- fmt.Sprint(out, err)
		}()
		tierflow := kittest.Runner(func() *cobra.Command {
			return kit.NewRoot("tierflow", "test", watch.PsCommand(), watch.MetricsCommand())
		})
		var ps string
		clocktest.Until(t, "ps shows a rank that waits for rank 1", func() bool {
			if len(ended) > 0 {
				t.Fatalf("ps shows no rank that waits for rank 1:\n%s\n%s", ps, <-ended)
			}
			clocktest.Pause(t.Context(), 50*time.Millisecond) // asking takes the ranks' time
			ps = strings.Join(strings.Fields(tierflow.Succeeds(t, "ps")), " ")
			return strings.Contains(ps, "allreduce 1 i32 sum #98 1 ")
		})
		if out := tierflow.Succeeds(t, "metrics"); !strings.Contains(out, `collective="allreduce"`) {
			t.Errorf("metrics have no allreduce:\n%s", out)
		}
		if err := os.WriteFile(filepath.Join(dir, "come"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, want := <-ended, fmt.Sprintf("late: %d ranks\n", mpi.ranks); !strings.Contains(out, want) {
			t.Errorf("want %q:\n%s", want, out)
		}
	})
}
