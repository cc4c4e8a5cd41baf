package tune

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/planner/profile"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

const (
	slowPlan = "shape=flat,fs=all,w=1,ib=adapt/chain"
	fastPlan = "shape=flat,fs=all,w=1,ib=adapt/binomial"
)

// writeProfile writes a profile of a job of 4x2, and returns its file.
func writeProfile(t *testing.T, calls ...profile.Call) string {
	t.Helper()
	p := &profile.Profile{Version: profile.Version, Machine: "4x2", Seconds: 10, Calls: calls}
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "calls.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Tune takes a profile's calls on all ranks, each point of a table once, and says what it leaves
// out.
func TestTuneProfile(t *testing.T) {
	calls := []profile.Call{
		{Collective: "bcast", Type: "f32", Count: 1000, Bytes: 4000, On: "4x2", Plan: fastPlan, Calls: 7, Seconds: 1},
		{Collective: "bcast", Type: "u8", Count: 4000, Bytes: 4000, On: "4x2", Plan: slowPlan, Calls: 7, Seconds: 1},
		{Collective: "allreduce", Type: "f64", Op: "max", Count: 8, Bytes: 64, On: "4x2", Plan: "shape=flat", Calls: 2, Seconds: 1},
		{Collective: "allgather", Type: "f32", Count: 8, Bytes: 32, On: "4x1", Plan: "shape=flat", Calls: 2},
		{Collective: "gather", Type: "f32", Count: 8, Bytes: 32, Differ: true, Mean: 4, Uneven: 2, On: "4x2", Plan: "shape=flat", Calls: 2},
	}
	file := writeProfile(t, calls...)
	args := []string{
		"tune", "-o", filepath.Join(t.TempDir(), "table.json"), "--topo", "4x2", "--simulate", "assumed", "--shapes", "flat", "--submodules", "adapt,nbc",
		"--inner", "0", "--windows", "1", "--method", "learn",
	}
	s := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, "--profile", file, "--break-even", "--json")...))
	if s.Entries != 2 || len(s.Left) != 2 || s.Left[0] != "allgather of 32B: on 4x1" || s.Left[1] != "gather of 32B: blocks that differ, which method learn doesn't know" {
		t.Errorf("%+v", s)
	}
	args[len(args)-1] = "exhaustive"
	all := kittest.Decode[Summary](t, tierflow.Succeeds(t, append(args, "--profile", file, "--break-even", "--json")...))
	if all.Entries != 3 || len(all.Left) != 1 {
		t.Errorf("method exhaustive: %+v", all)
	}
	args[len(args)-1] = "learn"
	if b := all.BreakEven; b == nil || b.Calls < 7 || b.Calls+b.Unknown != 20 || b.Before < b.After || b.Job != 10 {
		t.Errorf("%+v", b)
	}
	text := tierflow.Succeeds(t, append(args, "--profile", file, "--break-even")...)
	if !strings.Contains(text, file+": left out allgather of 32B: on 4x1\n") || !strings.Contains(text, "\nbreak even: tuning took ") {
		t.Error(text)
	}
	tierflow.RefusesAll(t, strings.Join(args, " "), map[string]string{
		"--profile " + file + " --ops bcast":     "--profile and --ops exclude each other",
		"--profile nosuch.json":                  "--profile: open nosuch.json",
		"--break-even":                           "--break-even compares with what a program calls: give --profile FILE",
		"--profile " + writeProfile(t, calls[3]): "nothing to tune on 4x2: allgather of 32B: on 4x1",
	})
}

// Tuning pays when what calls save together is what it took. Calls by a plan that nobody has
// measured don't count.
func TestBreakEven(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: 1000}
	e := table.PointOf(r, on, "x")
	measured := table.Measurement{Collective: "bcast", Levels: e.Levels, Place: e.Place, Bytes: 4000, Plan: slowPlan, NS: 4e6}
	e.Candidates = []table.Candidate{{Plan: fastPlan, NS: 1e6}}
	made := &table.Table{Entries: []table.Entry{e}, Measured: []table.Measurement{measured}, Provenance: table.Provenance{Seconds: 6}}
	call := func(plan string, n int64) profile.Call {
		return profile.Call{Collective: "bcast", Type: "f32", Count: 1000, Plan: plan, Calls: n}
	}
	p := &callProfile{Profile: &profile.Profile{Seconds: 5}, requests: map[int]tasks.Request{0: r, 1: r, 2: r}}
	for _, c := range []struct {
		calls []profile.Call
		want  BreakEven
	}{
		{ // 1000 calls save 3 s of 5: 2 jobs pay for 6 s
			[]profile.Call{call(slowPlan, 1000), call(fastPlan, 500), call("shape=han", 9)},
			BreakEven{Calls: 1500, Unknown: 9, Before: 4.5, After: 1.5, Job: 5, Tuning: 6, Pays: 3000, Running: 10},
		},
		{[]profile.Call{call(fastPlan, 500)}, BreakEven{Calls: 500, Before: .5, After: .5, Job: 5, Tuning: 6}},
	} {
		p.Calls = c.calls
		got := p.breakEven(made, on, "x")
		for _, x := range []*float64{&got.Pays, &got.Running, &got.Before, &got.After} {
			*x = math.Round(*x*1e6) / 1e6
		}
		if got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
