package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// process is tierflow as a process of its own.
type process struct {
	*exec.Cmd
	out, errors bytes.Buffer
}

// start starts tierflow. It is killed when ctx ends.
func start(ctx context.Context, t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.Env = append(os.Environ(), "TIERFLOW_TEST_COMMAND=1")
	p.Stdout, p.Stderr = &p.out, &p.errors
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// soon is much longer than a command takes to end, and less than its next piece of work took
// when it did not ask.
const soon = time.Minute

// Every command ends soon after a signal, in the midst of its work. The status says which
// one, and so does a line. None of them would end by itself in this time.
func TestSignals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the signals of Linux")
	}
	folder := t.TempDir()
	out := filepath.Join(folder, "out.json")
	const interrupted, terminated = syscall.SIGINT, syscall.SIGTERM
	for _, test := range []struct {
		line string
		by   syscall.Signal
	}{
		{"simulate alltoall --topo 256x12 --bytes 4MiB", terminated},
		{"simulate alltoall --topo 64x12 --bytes 4MiB --plan all", interrupted},
		{"tune --simulate assumed --topo 64x12 --ops bcast,allreduce -o " + out, terminated},
		{"bench coll allreduce --topo 2x2 --time 1h", terminated},
		{"bench coll alltoall --simulate assumed --topo 64x12 --bytes 4MiB", interrupted},
		{"verify all --topo 8x4", terminated},
		{"verify allreduce --random 1000000", interrupted},
		{"dag alltoall --topo 64x12 --bytes 64KiB --steps --all -o " + out, interrupted},
	} {
		t.Run(strings.ReplaceAll(test.line, folder, ""), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			p := start(ctx, t, strings.Fields(test.line)...)
			clocktest.Until(t, "the command has begun to compute", func() bool { return computed(p.Process.Pid) >= 300*time.Millisecond || ctx.Err() != nil })
			if err := p.Process.Signal(test.by); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(soon, cancel)
			_ = p.Wait()
			late.Stop()
			said := p.errors.String()
			if status, want := p.ProcessState.ExitCode(), 128+int(test.by); status != want {
				t.Errorf("status %d, want %d; it says %q", status, want, said)
			}
			if strings.Contains(said, "context canceled") || !strings.Contains(said, "interrupted") && !strings.Contains(said, "ended by SIGTERM") {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// computed returns how much processor time a process of Linux has used; 0: unknown.
func computed(pid int) time.Duration {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(data), ") ")
	var ticks int64 // of 10 ms
	if f := strings.Fields(after); len(f) > 12 {
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		ticks = user + system
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// A search that is interrupted writes the table of what it has measured until then.
func TestInterruptedTuneWrites(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the signals of Linux")
	}
	file := filepath.Join(t.TempDir(), "table.json")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p := start(ctx, t, strings.Fields("tune --simulate assumed --topo 8x2 --ops bcast --bytes 1MiB,4MiB,16MiB --method exhaustive -o "+file)...)
	if clocktest.Await(ctx, func() bool { // it saves now and then: then it has something
		data, err := os.ReadFile(file)
		return err == nil && bytes.Contains(data, []byte(`"samples"`))
	}) != nil {
		t.Fatalf("no table; %s", p.errors.String())
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if status := p.ProcessState.ExitCode(); status != 143 {
		t.Errorf("status %d; %s", status, p.errors.String())
	}
	made, err := table.Parse(file, []byte(kittest.Contents(t, file)), all.Submodules())
	if err != nil || len(made.Measured) == 0 {
		t.Fatalf("table %v, %v", made, err)
	}
	if !strings.Contains(p.errors.String(), "--resume goes on") {
		t.Errorf("it says %q", p.errors.String())
	}
}

// A simulated search ends within its budget. One too short for a measurement says so.
func TestBudget(t *testing.T) {
	for _, test := range []struct {
		line   string
		budget time.Duration
		want   string
	}{
		{"tune --simulate assumed --topo 64x12 --ops bcast,allreduce", 2 * time.Second, ""},
		{"tune --simulate assumed --topo 64x12 --ops bcast,allreduce", 50 * time.Millisecond, "--budget 50ms is less than it takes"},
		{"tune --simulate assumed --topo 64x4 --ops alltoall --bytes 16MiB --method exhaustive", time.Second, ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), test.budget+soon)
		defer cancel()
		p := start(ctx, t, append(strings.Fields(test.line), "--budget", test.budget.String(), "-o", filepath.Join(t.TempDir(), "table.json"))...)
		_ = p.Wait()
		status, said := p.ProcessState.ExitCode(), p.errors.String()
		if status != 0 && status != 1 || status == 1 && !strings.Contains(said, "is less than it takes") || !strings.Contains(said, test.want) {
			t.Errorf("%s, %v: status %d; it says %q", test.line, test.budget, status, said)
		}
	}
}
