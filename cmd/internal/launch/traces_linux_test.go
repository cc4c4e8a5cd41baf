package launch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

func init() { rankPrograms["barriers"] = barriers }

// barriers joins, and leaves after some barriers.
func barriers([]string) {
	ctx := context.Background()
	c, err := planner.Join(ctx, nil)
	check(err)
	for range 8 {
		check(planner.Barrier(ctx, c))
	}
	check(c.Close())
}

// The launcher has the traces of all ranks when the job is over, and no agent leaves any.
func TestTracesComeHome(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", there) // of the agents
	opts := Options{Program: rankLine(t, "barriers")}
	opts.Hosts, opts.Launcher, opts.Oversubscribe = "a:2,b:1", launcherLocal, true
	opts.TraceDir, opts.TraceEvery = here, 1
	r := run(t, opts)
	if r.status != 0 {
		t.Fatalf("%+v", r)
	}
	for rank := range 3 {
		text, err := os.ReadFile(filepath.Join(here, traceName(rank)))
		if err != nil || !strings.HasPrefix(string(text), `{"format":1,`) || !strings.HasSuffix(string(text), "}\n") {
			t.Errorf("rank %d: %v, %.60s", rank, err, text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(there, "tierflow-trace*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	opts.TraceDir = ""
	if r := run(t, opts); r.status != statusOptions {
		t.Errorf("a number without a folder: %+v", r)
	}
}
