package goal_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/goal"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/tasks"
)

// buildSimGrid compiles the program that simulates GOAL with SimGrid, or skips the test.
func buildSimGrid(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiling a program for SimGrid takes some seconds")
	}
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is missing: no comparison with SimGrid")
	}
	if _, err := os.Stat("/usr/include/simgrid/s4u.hpp"); err != nil {
		t.Skip("SimGrid is missing (Debian: libsimgrid-dev): no comparison with it")
	}
	program := filepath.Join(t.TempDir(), "simgrid")
	build := exec.CommandContext(t.Context(), "g++", "-std=c++17", "-o", program, "testdata/simgrid.cpp", "-lsimgrid")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// SimGrid and package sim agree on flat trees and rings within 5%, with latency and time per
// byte only: that is what both have.
func TestSimGrid(t *testing.T) {
	program := buildSimGrid(t)
	m := &machine.Machine{
		Version: machine.Version, Links: []machine.Link{{Level: 'i', Latency: 1000, Byte: 8}},
		EagerMax: 1 << 30, Budget: 1 << 30,
	}
	for _, test := range []struct {
		coll tasks.Collective
		topo string
		plan string
	}{
		{tasks.Bcast, "16x1", "shape=flat,fs=all,w=1,i=adapt/chain"},
		{tasks.Bcast, "16x1", "shape=flat,fs=64KiB,w=16,i=adapt/chain"},
		{tasks.Bcast, "16x1", "shape=flat,fs=all,w=1,i=nbc/binomial"},
		{tasks.Bcast, "16x1", "shape=flat,fs=all,w=1,i=nbc/chain"},
		{tasks.Bcast, "9x1", "shape=flat,fs=all,w=1,i=adapt/linear"},
		{tasks.Allgather, "8x1", "shape=flat,fs=all,w=1,i=nbc/ring"},
		{tasks.Allreduce, "8x1", "shape=ar,fs=all,w=1,i=nbc/ring"},
		{tasks.ReduceScatter, "12x1", "shape=flat,fs=all,w=1,i=nbc/ring"},
	} {
		request := tasks.Request{Coll: test.coll, Type: tasks.Float32, Count: 1 << 18}
		if request.Reduces() {
			request.Op = tasks.Sum
		}
		r, on, p := problem(t, request, test.topo, test.plan)
		progs := programs(t, r, on, p)
		s, err := goal.FromPrograms(progs, m)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "schedule.goal")
		if err := os.WriteFile(file, s.Format(), 0o600); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), program, file, "125e6", "1e-6")
		out, err := run.Output()
		if err != nil {
			t.Fatalf("%v: %v", test, err)
		}
		theirs, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			t.Fatalf("%v: %q", test, out)
		}
		job, err := sim.New(on, progs)
		if err != nil {
			t.Fatal(err)
		}
		result, err := job.Run(m, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ours := result.Time.Nanoseconds() / 1e9
		t.Logf("%v on %s by %s: SimGrid %.6f s, here %.6f s, ratio %.3f", test.coll, test.topo, test.plan, theirs, ours, ours/theirs)
		if off := math.Abs(ours/theirs - 1); off > 0.05 {
			t.Errorf("%v on %s by %s: SimGrid %.6f s, here %.6f s", test.coll, test.topo, test.plan, theirs, ours)
		}
	}
}
