package executor_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A panic in a hook that a driver calls ends the process with its text, though the
// caller recovers what panics in calls of its own.
func TestCrash(t *testing.T) {
	const child = "TIERFLOW_TEST_CRASH"
	if os.Getenv(child) != "" {
		panicInDriver(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrash$")
	command.Env = append(os.Environ(), child+"=1")
	out, err := command.CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(out), "executor: a driver panicked: ouch") {
		t.Errorf("error %v, want a crash that says why; it says:\n%s", err, out)
	}
}

func panicInDriver(t *testing.T) {
	topo := tasktest.Topology(t, "1")
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Uint8, Op: tasks.Sum}
	p := tasktest.Plan(t, "shape=han,fs=all,w=1,s=nbc")
	prog, err := submodules.CompileFor(r, topo.Hierarchy(0), p, 0, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	w := local.New(1, executor.Config{})
	defer w.Close()
	run, err := w.Endpoint(0).Comm(0).Bind(executor.Binding{
		Compiled: submodules.Compiled{Rest: prog}, Request: r.String(), Send: []byte{1}, Recv: []byte{0},
		Kernel: func(_, _, _ []byte) {}, Ended: func(dag.ID) { panic("ouch") },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = recover() }()
	_ = run.Do(context.Background())
}
