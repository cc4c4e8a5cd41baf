package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/submodules/all"
)

// The first job writes a profile; before the second one the ranks learn for its calls, and keep what
// they have learned where jobs look.
func TestRunTune(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	folder := t.TempDir()
	calls := filepath.Join(folder, "calls.json")
	for name, value := range map[string]string{
		"TIERFLOW_TEST_COMMAND": "1", "XDG_CACHE_HOME": folder, env.Machine: planner.MachineAuto, env.Profile: calls, env.Tune: "1m",
	} {
		t.Setenv(name, value)
	}
	job := func() (status int, errs string) {
		var out, errors strings.Builder
		status = run(t.Context(), append([]string{"run", "--hosts", "a:1,b:1", "--launcher", "local", "--agent", os.Args[0] + " agent", "--", os.Args[0]},
			strings.Fields("bench coll bcast --bytes 4KiB --iters 2")...), nil, &out, &errors)
		return status, errors.String()
	}
	if status, errs := job(); status != 0 || !strings.Contains(errs, "nothing is tuned: "+calls) {
		t.Fatalf("status %d, %s", status, errs)
	}
	if status, errs := job(); status != 0 || !strings.Contains(errs, "by learn") {
		t.Fatalf("status %d, %s", status, errs)
	}
	kept, err := filepath.Glob(filepath.Join(folder, "tierflow", raw.KeptTables, "*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %q, %v; want one table", kept, err)
	}
	made, err := choose.LoadTable(kept[0], all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int64]bool{}
	for _, e := range made.Entries {
		if e.Collective == "bcast" {
			sizes[e.Bytes] = true
		}
	}
	if !sizes[4096] {
		t.Errorf("entries %+v; want a bcast of 4 KiB", made.Entries)
	}
}

// What can't be learned, or would not be used, is an error before a rank starts.
func TestRunTuneErrors(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{env.Tune, "soon", `"soon"; allowed are durations such as 30s`},
		{env.Tune, "-3s", `"-3s"; allowed are`},
		{env.Profile, "", "TIERFLOW_PROFILE=FILE names one"},
		{env.Profile, "summary", "TIERFLOW_PROFILE=FILE names one"},
		{env.Table, "t.json", "since TIERFLOW_TABLE says by what it decides"},
		{env.Machine, planner.MachineOff, "since TIERFLOW_MACHINE says by what it decides"},
	} {
		t.Run(test.name+test.value, func(t *testing.T) {
			t.Setenv(env.Tune, "1s")
			t.Setenv(env.Profile, "calls.json")
			t.Setenv(env.Machine, "")
			t.Setenv(test.name, test.value)
			tierflow.Refuses(t, test.want, "run", "-n", "1", "--", "true")
		})
	}
}
