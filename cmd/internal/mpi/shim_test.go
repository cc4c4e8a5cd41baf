package mpi

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join/env"
)

func TestWithShim(t *testing.T) {
	const openMPI, hydra = "mpirun (Open MPI) 4.1.4", "HYDRA build details:"
	for _, test := range []struct {
		version, shim, environ, args string
		line, extra                  string // or, of an error, what it says
	}{
		{openMPI, "/s.so", "TIERFLOW_MPI=off HOME=/", "-n 2 ./prog", "-x LD_PRELOAD=/s.so -x TIERFLOW_MPI -n 2 ./prog", ""},
		{openMPI, "/s.so", "LD_PRELOAD=/tool.so", "-n 2 ./prog", "-x LD_PRELOAD=/tool.so:/s.so -n 2 ./prog", ""},
		{openMPI, "/s.so", "LD_PRELOAD=/tool.so", "-x A -x LD_PRELOAD=/other.so -n 2 ./prog", "-x A -x LD_PRELOAD=/other.so:/s.so -n 2 ./prog", ""},
		{openMPI, "/s.so", "", "-x LD_PRELOAD= -n 2 ./prog", "-x LD_PRELOAD=/s.so -n 2 ./prog", ""},
		{openMPI, "/s.so", "TIERFLOW_MPI=off", "-n 1 ./a : -n 2 ./b", "-x LD_PRELOAD=/s.so -x TIERFLOW_MPI -n 1 ./a : -x LD_PRELOAD=/s.so -x TIERFLOW_MPI -n 2 ./b", ""},
		{openMPI, "/s.so", "", "-n 1 ./a : -x LD_PRELOAD=/t.so -n 2 ./b", "-x LD_PRELOAD=/s.so -n 1 ./a : -x LD_PRELOAD=/t.so:/s.so -n 2 ./b", ""},
		{openMPI, "/s.so", "", "--app programs", "", "--app programs: -x counts for programs of the command line alone"},
		{openMPI, "/with blank/s.so", "", "-n 2 ./prog", "", `shim "/with blank/s.so": LD_PRELOAD separates names by blanks`},
		{hydra, "/s.so", "LD_PRELOAD=/tool.so", "-n 2 ./prog", "-genv LD_PRELOAD /tool.so:/s.so -n 2 ./prog", ""},
		{hydra, "/s.so", "", "-genv LD_PRELOAD /t.so -n 2 ./prog", "-genv LD_PRELOAD /t.so:/s.so -n 2 ./prog", ""},
		{hydra, "/s.so", "", "-n 1 ./a : -env LD_PRELOAD /t.so -n 2 ./b", "-genv LD_PRELOAD /s.so -n 1 ./a : -env LD_PRELOAD /t.so:/s.so -n 2 ./b", ""},
		{hydra, "/s.so", "", "-configfile programs", "", "-configfile: what is preloaded in it"},
		{"slurm 22.05", "/s.so", "LD_PRELOAD=", "-n 2 ./prog", "-n 2 ./prog", "LD_PRELOAD=/s.so"},
		{"slurm 22.05", "/a:b/s.so", "", "-n 2 ./prog", "", `shim "/a:b/s.so"`},
	} {
		line, extra, err := withShim(test.version, test.shim, append([]string{"launch"}, strings.Fields(test.args)...), strings.Fields(test.environ))
		switch {
		case test.line == "":
			if err == nil || !strings.Contains(err.Error(), test.extra) {
				t.Errorf("%s %s: %v, want %q", test.version, test.args, err, test.extra)
			}
		case err != nil || strings.Join(line, " ") != "launch "+test.line || strings.Join(extra, " ") != test.extra:
			t.Errorf("%s %s: %q, %q and %v, want %q and %q", test.version, test.args, line, extra, err, test.line, test.extra)
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
	for script, want := range map[string]string{":": noMarks + "\n", "exit 3": "", ": >$" + env.MPIMarks + "/r0": ""} {
		var out strings.Builder
		if err := launch(t.Context(), shim, []string{"/bin/sh", "-c", script}, nil, io.Discard, &out); !strings.HasSuffix(out.String(), want) || want == "" && strings.Contains(out.String(), noMarks) {
			t.Errorf("%s: said %q, want %q: %v", script, out.String(), want, err)
		}
	}
	for _, said := range []string{"", "0"} { // by the environment
		if said != "" {
			t.Setenv(env.Managed, said)
		}
		var out strings.Builder
		err := launch(t.Context(), shim, []string{"/bin/sh", "-c", "echo $" + env.Managed}, nil, &out, io.Discard)
		if want := cmp.Or(said, "1") + "\n"; err != nil || out.String() != want {
			t.Errorf("managed is %q, want %q: %v", out.String(), want, err)
		}
	}
	if err := build(context.Background(), "mpicc.of-nobody", "x.so"); err == nil || !strings.Contains(err.Error(), "give --mpicc") {
		t.Errorf("error %v", err)
	}
	if err := launch(context.Background(), "/nowhere.so", []string{"mpirun"}, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "tierflow mpi build makes it") {
		t.Errorf("error %v", err)
	}
}
