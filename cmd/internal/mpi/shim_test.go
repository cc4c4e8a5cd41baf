package mpi

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit"
)

func TestWithShim(t *testing.T) {
	args := strings.Fields("launch -n 2 ./prog")
	for _, test := range []struct {
		version, environ, line, extra string
	}{
		{"mpirun (Open MPI) 4.1.4", "TIERFLOW_MPI=off HOME=/", "launch -x LD_PRELOAD=/s.so -x TIERFLOW_MPI -n 2 ./prog", ""},
		{"HYDRA build details:", "LD_PRELOAD=/tool.so", "launch -genv LD_PRELOAD /tool.so:/s.so -n 2 ./prog", ""},
		{"slurm 22.05", "LD_PRELOAD=", "launch -n 2 ./prog", "LD_PRELOAD=/s.so"},
	} {
		line, extra := withShim(test.version, "/s.so", args, strings.Fields(test.environ))
		if got := strings.Join(line, " "); got != test.line || strings.Join(extra, " ") != test.extra {
			t.Errorf("%s: %q and %q, want %q and %q", test.version, got, extra, test.line, test.extra)
		}
	}
}

func TestComplaints(t *testing.T) {
	shim := filepath.Join(t.TempDir(), "shim.so")
	if err := os.WriteFile(shim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, launcher := range []string{"mpirun.of-nobody", "/nowhere/mpirun"} {
		root := kit.NewRoot("tierflow", "", Command())
		if status := kit.Execute(t.Context(), root, []string{"mpi", "run", "--shim", shim, "--", launcher}, nil, io.Discard, io.Discard); status != 127 {
			t.Errorf("%s: status %d, want 127", launcher, status)
		}
	}
	if err := build(context.Background(), "mpicc.of-nobody", "x.so"); err == nil || !strings.Contains(err.Error(), "give --mpicc") {
		t.Errorf("error %v", err)
	}
	if err := launch(context.Background(), "/nowhere.so", []string{"mpirun"}, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "tierflow mpi build makes it") {
		t.Errorf("error %v", err)
	}
}
