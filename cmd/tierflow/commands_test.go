package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/planner"
)

func TestInfo(t *testing.T) {
	text := succeeds(t, "info")
	head, rest, _ := strings.Cut(text, "\n\n")
	catalogue, kernels, ok := strings.Cut(rest, "\nkernels:")
	if !ok || !strings.HasPrefix(head, "tierflow ") || !strings.Contains(kernels, "\nbf16 ") {
		t.Errorf("info prints\n%s", text)
	}
	dagtest.Golden(t, golden("info_catalogue.txt"), catalogue)
	i := decode[information](t, succeeds(t, "info", "--json"))
	if len(i.Submodules) == 0 || i.CPUs < 1 || len(i.Shapes) == 0 || len(i.Collectives) == 0 {
		t.Errorf("info --json has %+v", i)
	}
	for _, k := range i.Kernels {
		if k.Datatype == "f32" && (k.Bytes != 4 || k.By["sum"] == "" || k.By["band"] != "") {
			t.Errorf("kernels of f32: %+v", k)
		}
	}
}

func TestPlan(t *testing.T) {
	text := succeeds(t, "plan", "allreduce", "--bytes", "4MiB")
	dagtest.Golden(t, golden("plan.txt"), text)
	forced := succeeds(t, "plan", "bcast", "--bytes", "1TiB", "--topo", "128x32", "--plan", "i=adapt/binomial")
	if !strings.Contains(forced, "i=adapt/binomial") || !strings.Contains(forced, "forced by") {
		t.Errorf("a forced plan is explained as\n%s", forced)
	}
	s := tierflow(t, "plan", "allreduce", "--bytes", "1MiB", "--topo", "2x2", "--plan", "i=sm")
	if s.status == 0 || s.out != "" || !strings.Contains(s.errors, "ir=sm: sm works between ranks that share memory") {
		t.Errorf("a plan that can't be compiled: status %d, output %q, errors %q", s.status, s.out, s.errors)
	}
}

// The environment forces plans where --plan doesn't.
func TestPlanFromEnvironment(t *testing.T) {
	var out, errors strings.Builder
	t.Setenv(planner.PlanVariable, "shape=star")
	if status := run(t.Context(), []string{"dag", "allreduce"}, nil, &out, &errors); status != 2 || !strings.Contains(errors.String(), planner.PlanVariable) {
		t.Errorf("status %d, errors %q; want a complaint about the variable", status, errors.String())
	}
	t.Setenv(planner.PlanVariable, "shape=flat")
	if status := run(t.Context(), []string{"dag", "allreduce"}, nil, &out, &errors); status != 0 || !strings.Contains(out.String(), "shape=flat") {
		t.Errorf("status %d, output %q", status, out.String())
	}
}

// Under a launcher only bench runs on the job's processes.
func TestTraceIsNoJob(t *testing.T) {
	t.Setenv("TIERFLOW_RANK", "0")
	if s := tierflow(t, "trace", "bcast", "-o", "-"); s.status != 2 || !strings.Contains(s.errors, "launched job") {
		t.Errorf("%+v, want status 2", s)
	}
	if s := tierflow(t, "bench", "coll", "bcast", "--topo", "2"); s.status != 2 || !strings.Contains(s.errors, "launched job") {
		t.Errorf("%+v, want status 2", s)
	}
}

var overlapLine = regexp.MustCompile(`(?m)^ib and sb overlap: \d+% of sb \(.*\)$`)

func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	args := strings.Fields("trace allreduce --topo 2x2 --bytes 256KiB --plan shape=han,fs=64KiB --link i=10gbit,1us")
	s := tierflow(t, append(args, "-o", file)...)
	if s.status != 0 || s.out != "" || !overlapLine.MatchString(s.errors) || !strings.Contains(s.errors, "emulated") {
		t.Errorf("%+v, want the overlap beside the file", s)
	}
	type event struct {
		Name string  `json:"name"`
		Ph   string  `json:"ph"`
		Ts   float64 `json:"ts"`
		Pid  int     `json:"pid"`
	}
	var trace struct {
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal([]byte(contents(t, file)), &trace); err != nil {
		t.Fatal(err)
	}
	ranks, names := map[int]bool{}, map[string]int{}
	for _, e := range trace.Events {
		if e.Ph == "X" {
			ranks[e.Pid] = true
			names[e.Name]++
		}
		if e.Ts < 0 {
			t.Errorf("event %+v is before the first", e)
		}
	}
	if len(ranks) != 4 || names["ib#3 send r0>r2 64KiB"] != 1 {
		t.Errorf("steps of ranks %v; the last segment was sent %d times", ranks, names["ib#3 send r0>r2 64KiB"])
	}
	if out := tierflow(t, append(args, "-o", "-")...).out; !json.Valid([]byte(out)) {
		t.Errorf("-o - prints %.60q", out)
	}
	text := succeeds(t, append(args, "--format", "text", "--width", "40")...)
	if !overlapLine.MatchString(text) || !regexp.MustCompile(`(?m)^rank 3  s  .{40}$`).MatchString(text) {
		t.Errorf("--format text prints\n%s", text)
	}
}

// The program's status is the command's, and its failure is what is said last.
func TestRun(t *testing.T) {
	t.Setenv("TIERFLOW_TEST_AGENT", "1")
	agent := os.Args[0]
	out := tierflow(t, "run", "-n", "2", "--agent", agent, "--", "/bin/sh", "-c", "echo $TIERFLOW_RANK of $TIERFLOW_SIZE")
	if out.status != 0 || !strings.Contains(out.out, "[1] 1 of 2\n") {
		t.Errorf("%+v", out)
	}
	failed := tierflow(t, "run", "-n", "2", "--agent", agent, "--", "/bin/sh", "-c", "exit $((7 * TIERFLOW_RANK))")
	if failed.status != 7 || !strings.HasPrefix(failed.errors, "tierflow run: rank 1 on localhost: exit status 7") {
		t.Errorf("%+v, want status 7", failed)
	}
	if s := tierflow(t, "run", "-n", "3", "--hosts", "a:1", "--", "true"); s.status != 125 {
		t.Errorf("%+v, want status 125", s)
	}
	if s := tierflow(t, "run", "-n", "1", "--agent", agent, "--", "/no/such/program"); s.status != 127 {
		t.Errorf("%+v, want status 127", s)
	}
}

// TestMain lets the test's binary be the agent that tierflow run starts.
func TestMain(m *testing.M) {
	if os.Getenv("TIERFLOW_TEST_AGENT") != "" {
		os.Exit(run(context.Background(), []string{"agent"}, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
