package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner/tune"
)

func TestInfo(t *testing.T) {
	text := tierflow.Succeeds(t, "info")
	head, rest, _ := strings.Cut(text, "\n\n")
	catalogue, kernels, ok := strings.Cut(rest, "\nkernels:")
	if !ok || !strings.HasPrefix(head, "tierflow ") || !strings.Contains(kernels, "\nbf16 ") {
		t.Errorf("info prints\n%s", text)
	}
	kittest.CheckGolden(t, "info_catalogue.txt", catalogue)
	i := kittest.Decode[information](t, tierflow.Succeeds(t, "info", "--json"))
	if len(i.Submodules) == 0 || i.CPUs < 1 || len(i.Shapes) == 0 || len(i.Collectives) == 0 {
		t.Errorf("info --json has %+v", i)
	}
	for _, k := range i.Kernels {
		if k.Datatype == "f32" && (k.Bytes != 4 || k.By["sum"] == "" || k.By["band"] != "") {
			t.Errorf("kernels of f32: %+v", k)
		}
	}
}

// Each variable is listed with its value, but for a secret's, and so are unknown ones.
func TestInfoEnv(t *testing.T) {
	t.Setenv("TIERFLOW_SITE", "north")
	t.Setenv("TIERFLOW_SECRET", "0123456789abcdef")
	t.Setenv("TIERFLOW_PLANN", "7")
	listed := map[string]envVariable{}
	for _, v := range kittest.Decode[[]envVariable](t, tierflow.Succeeds(t, "info", "--env", "--json")) {
		listed[v.Name] = v
	}
	for name, value := range map[string]string{"TIERFLOW_SITE": "north", "TIERFLOW_SECRET": "(set)", "TIERFLOW_PLANN": "7", "TIERFLOW_TLS": ""} {
		if v := listed[name]; v.Value != value || v.What == "" || (v.Counts == "") != (name == "TIERFLOW_PLANN") {
			t.Errorf("%s: %+v, want the value %q", name, v, value)
		}
	}
	text := tierflow.Succeeds(t, "info", "--env")
	for _, v := range env.All() {
		if !strings.Contains(text, v.Name+" ") || v.What == "" {
			t.Errorf("%s is not in\n%s", v.Name, text)
		}
	}
}

func TestPlan(t *testing.T) {
	text := tierflow.Succeeds(t, "plan", "allreduce", "--bytes", "4MiB")
	kittest.CheckGolden(t, "plan.txt", text)
	forced := tierflow.Succeeds(t, "plan", "bcast", "--bytes", "1TiB", "--topo", "128x32", "--plan", "i=adapt/binomial")
	if !strings.Contains(forced, "i=adapt/binomial") || !strings.Contains(forced, "forced by") {
		t.Errorf("a forced plan is explained as\n%s", forced)
	}
	s := tierflow.Run(t, "plan", "allreduce", "--bytes", "1MiB", "--topo", "2x2", "--plan", "i=sm")
	if s.Status == 0 || s.Out != "" || !strings.Contains(s.Errors, "ir=sm: sm works between ranks that share memory") {
		t.Errorf("a plan that can't be compiled: status %d, output %q, errors %q", s.Status, s.Out, s.Errors)
	}
}

// The environment forces plans where --plan doesn't.
func TestPlanFromEnvironment(t *testing.T) {
	var out, errors strings.Builder
	t.Setenv(env.Plan, "shape=star")
	if status := run(t.Context(), []string{"dag", "allreduce"}, nil, &out, &errors); status != 2 || !strings.Contains(errors.String(), env.Plan) {
		t.Errorf("status %d, errors %q; want a complaint about the variable", status, errors.String())
	}
	t.Setenv(env.Plan, "shape=flat")
	if status := run(t.Context(), []string{"dag", "allreduce"}, nil, &out, &errors); status != 0 || !strings.Contains(out.String(), "shape=flat") {
		t.Errorf("status %d, output %q", status, out.String())
	}
}

// plan explains a decision by a table that tune has written.
func TestPlanOfTunedTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	tierflow.Succeeds(t, strings.Fields("tune -o "+file+" --ops bcast,allreduce --min 1KiB --max 64KiB --json --topo 2x2 --simulate assumed"+
		" --submodules adapt,sm --segments 16KiB,all --windows 2 --inner 0 --time 1ms --plan i=adapt/binomial --method exhaustive")...)
	text := tierflow.Succeeds(t, "plan", "bcast", "--bytes", "10000", "--topo", "2x2", "--table", file, "--explain", "--heuristics")
	for _, want := range []string{"entry: bcast of 4KiB on i=2,s=2, weight 0.52", "entry: bcast of 16KiB", "runner-up: ", "candidates: ", "rejected "} {
		if !strings.Contains(text, want) {
			t.Errorf("plan --explain has no %q:\n%.3000s", want, text)
		}
	}
	e := kittest.Decode[tune.Explanation](t, tierflow.Succeeds(t, "plan", "allreduce", "--bytes", "65536", "--topo", "2x2", "--table", file, "--explain", "--json"))
	if e.Table != file || e.Fallback != "" || !e.Candidates[0].Chosen || e.Candidates[0].NS <= 0 {
		t.Errorf("%.2000v", e)
	}
}

// Under a launcher only bench runs on the job's processes.
func TestTraceIsNoJob(t *testing.T) {
	t.Setenv("TIERFLOW_RANK", "0")
	tierflow.Refuses(t, "launched job", "trace", "bcast", "-o", "-")
	tierflow.Refuses(t, "launched job", "bench", "coll", "bcast", "--topo", "2")
}

// The program's status is the command's, and its failure is what is said last.
func TestRun(t *testing.T) {
	t.Setenv("TIERFLOW_TEST_AGENT", "1")
	agent := os.Args[0]
	out := tierflow.Run(t, "run", "-n", "2", "--agent", agent, "--", "/bin/sh", "-c", "echo $TIERFLOW_RANK of $TIERFLOW_SIZE")
	if out.Status != 0 || !strings.Contains(out.Out, "[1] 1 of 2\n") {
		t.Errorf("%+v", out)
	}
	failed := tierflow.Run(t, "run", "-n", "2", "--agent", agent, "--", "/bin/sh", "-c", "exit $((7 * TIERFLOW_RANK))")
	if failed.Status != 7 || !strings.HasPrefix(failed.Errors, "tierflow run: rank 1 on localhost: exit status 7") {
		t.Errorf("%+v, want status 7", failed)
	}
	for _, line := range []string{"-n 2 echo -n 1", "-np 2 echo -n 1", "-np=2 -- echo -n 1", "--no-prefix --map rr -np2 echo -np 1"} {
		var out, errors strings.Builder
		status := run(t.Context(), append([]string{"run", "--agent", agent}, strings.Fields(line)...), nil, &out, &errors)
		if got := strings.Count(out.String(), "1"); status != 0 || got < 2 {
			t.Errorf("tierflow run %s: status %d, output %q, errors %q; want 1 from each of two ranks", line, status, out.String(), errors.String())
		}
	}
	var piped, errors strings.Builder
	if status := run(t.Context(), []string{"run", "-n", "2", "--agent", agent, "--", "cat"}, strings.NewReader("hello\n"), &piped, &errors); status != 0 || piped.String() != "[0] hello\n" {
		t.Errorf("echo hello | tierflow run -n 2 -- cat: status %d, output %q, errors %q", status, piped.String(), errors.String())
	}
	if s := tierflow.Run(t, "run", "-n", "3", "--hosts", "a:1", "--", "true"); s.Status != 2 {
		t.Errorf("%+v, want status 2", s)
	}
	if s := tierflow.Run(t, "run", "-n", "1", "--agent", agent, "--", "/no/such/program"); s.Status != 127 {
		t.Errorf("%+v, want status 127", s)
	}
}

// A plan that the environment forces holds for a launched job as for goroutine ranks.
func TestBenchPlanFromEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	t.Setenv("TIERFLOW_TEST_AGENT", "1")
	bench := strings.Fields("bench coll bcast --bytes 64KiB --iters 2 --json")
	launch := append([]string{"run", "--no-prefix", "--hosts", "a:1,b:1", "--launcher", "local", "--agent", os.Args[0], "--", os.Args[0]}, bench...)
	for _, args := range [][]string{append(bench, "--topo", "2x1"), launch} {
		var out, errors strings.Builder
		t.Setenv(env.Plan, "shape=flat,ib=adapt/linear")
		status := run(t.Context(), args, nil, &out, &errors)
		if status != 0 || strings.Count(out.String(), `"plan": `) != 1 || !strings.Contains(out.String(), `"plan": "shape=flat,`) {
			t.Errorf("tierflow %v: status %d, output %s, errors %s", args, status, out.String(), errors.String())
		}
	}
}

// rankPrograms are what ranks of tests run.
var rankPrograms = map[string]func() error{"stuck": stuckRank, "late": lateRank, "aware": awareRank}

// TestMain lets the test's binary be tierflow, the agent that tierflow run starts, and a rank.
func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	if program, is := rankPrograms[os.Getenv("TIERFLOW_TEST_PROGRAM")]; is {
		if err := program(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("TIERFLOW_TEST_RANK") != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv("TIERFLOW_RANK") != "" && os.Getenv("TIERFLOW_TEST_AGENT") != "" && len(os.Args) > 1 {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv("TIERFLOW_TEST_COMMAND") != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if os.Getenv("TIERFLOW_TEST_AGENT") != "" {
		os.Exit(run(context.Background(), []string{"agent"}, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
