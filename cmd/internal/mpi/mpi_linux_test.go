package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/draw"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/submodules/all"
)

// patience is after how long a program that runs is one that hangs. Some MPIs spin while
// they wait, whoever else needs the processor.
const patience = 2 * time.Minute

// library is a MPI that may be installed.
type library struct {
	name  string // of its mpicc
	run   []string
	ranks int // MPICH's spin: more than processors take for ever
}

var libraries = []library{
	{"openmpi", []string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"}, 3},
	{"mpich", []string{"mpiexec.hydra"}, 2},
}

var scratch string

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	var err error
	if scratch, err = os.MkdirTemp("", "tierflow-mpi"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

// built has libtierflow.so, once.
var built = sync.OnceValues(func() (string, error) {
	file := filepath.Join(scratch, "libtierflow.so")
	out, err := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "../../libtierflow").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the library: %w\n%s", err, out)
	}
	return file, err
})

// onEach calls f for each MPI that is here, with its shim.
func onEach(t *testing.T, f func(t *testing.T, mpi library, shim string)) {
	for _, mpi := range libraries {
		t.Run(mpi.name, func(t *testing.T) { f(t, mpi, mpi.shim(t)) })
	}
}

// shim builds the MPI's shim beside the library.
func (mpi library) shim(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"mpicc." + mpi.name, mpi.run[0], "cc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not here", tool)
		}
	}
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(scratch, mpi.name+".so")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if err := build(t.Context(), "mpicc."+mpi.name, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// program compiles a program of testdata, in C or Fortran.
func (mpi library) program(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(scratch, name+"."+mpi.name)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	source, compiler := filepath.Join("..", "..", "..", "testdata", "mpi", name), "mpicc."
	if _, err := os.Stat(source + ".c"); err == nil {
		source += ".c"
	} else {
		source, compiler = source+".f90", "mpifort."
	}
	args := []string{"-g", "-o", file, source, "-lpthread"}
	if compiler == "mpifort." {
		args = append(args, "-fallow-argument-mismatch")
	}
	out, err := exec.Command(compiler+mpi.name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return file
}

// under runs a program with a shim and variables NAME=VALUE, and returns all it prints.
func (mpi library) under(t *testing.T, shim string, variables []string, program ...string) (out string, err error) {
	t.Helper()
	args := append(append([]string{}, mpi.run...), append([]string{"-n", fmt.Sprint(mpi.ranks)}, program...)...)
	environ := append(os.Environ(), variables...)
	line, extra, err := withShim(mpi.version(), shim, args, environ)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Env = append(environ, extra...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	var all bytes.Buffer
	c.Stdout, c.Stderr = &all, &all
	err = c.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v %v hangs\n%s", variables, program, &all)
	}
	return all.String(), err
}

// versions are what commands say of themselves: asking takes as long as a small job.
var versions sync.Map

// version is what the MPI's command says of itself.
func (mpi library) version() string {
	said, known := versions.Load(mpi.name)
	if !known {
		text, _ := exec.Command(mpi.run[0], "--version").Output()
		said = string(text)
		versions.Store(mpi.name, said)
	}
	return said.(string)
}

// counted reports whether the table of TIERFLOW_MPI_VERBOSE has a row.
func counted(out, row string) bool {
	return regexp.MustCompile(`(?m)^tierflow:   ` + strings.ReplaceAll(row, " ", " +") + `( |$)`).MatchString(out)
}

// Programs that are right are right under the shim, and tierflow takes part.
func TestPrograms(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		for _, test := range []struct{ name, want, ours string }{
			{"progress", fmt.Sprintf("progress: sum %d\n", mpi.ranks), "allreduce 5 0"},
			{"fallbacks", "fallbacks: 0 wrong\n", "scatter [1-9][0-9]* [0-9]+ communicator [1-9][0-9]*"},
			{"threads", "threads: 0 wrong\n", "bcast [1-9][0-9]* 0"},
			{"sizes", "sizes: 0 wrong\n", "allreduce 900 0"},
			{"counts", "counts: 0 wrong\n", "alltoallv [1-9][0-9]* "},
			{"started", "started: 0 wrong\n", "alltoallv [1-9][0-9]* 0"},
			{"signals", "signals: 0 wrong\n", "allreduce [1-9][0-9]* "},
		} {
			out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_AFTER=1", "TIERFLOW_MPI_VERBOSE=1"}, mpi.program(t, test.name))
			if err != nil || !strings.Contains(out, test.want) || !counted(out, test.ours) {
				t.Errorf("%s: %v, want %q and %q\n%s", test.name, err, test.want, test.ours, out)
			}
		}
	})
}

// Fortran's calls are tierflow's too; those of MPICH's module for Fortran 2008 are MPI's, from
// its start on.
func TestFortran(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		for _, tool := range []string{"gfortran", "mpifort." + mpi.name} {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("SKIPPED: %s is not here", tool)
			}
		}
		for _, name := range []string{"fortran", "fortran08"} {
			out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_AFTER=1", "TIERFLOW_MPI_VERBOSE=1"}, mpi.program(t, name))
			ours := name == "fortran" || mpi.name == "openmpi"
			if err != nil || !strings.Contains(out, name+": 0 wrong\n") || counted(out, "gatherv 5 0") != ours || counted(out, "MPI_Sendrecv 0 1 always MPI's: .*") != ours {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	})
}

// Ranks on two nodes, which one host plays, are as right as on one.
func TestTwoNodes(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		for name, want := range map[string]string{"fallbacks": "fallbacks: 0 wrong\n", "counts": "counts: 0 wrong\n", "started": "started: 0 wrong\n", "signals": "signals: 0 wrong\n", "progress": fmt.Sprintf("progress: sum %d\n", mpi.ranks)} {
			script := `export TIERFLOW_NODE=node$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} % 2)); exec "$0"`
			out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_AFTER=1", "TIERFLOW_MPI_VERBOSE=1"}, "sh", "-c", script, mpi.program(t, name))
			if err != nil || !strings.Contains(out, want) || !strings.Contains(out, " on 2 nodes") {
				t.Errorf("%s: %v, want %q on 2 nodes\n%s", name, err, want, out)
			}
		}
	})
}

// All programs of one job get the shim.
func TestTwoProgramsOfAJob(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		prog := mpi.program(t, "progress")
		out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_AFTER=1", "TIERFLOW_MPI_VERBOSE=1"}, prog, ":", "-n", "1", prog)
		if want := fmt.Sprintf("progress: sum %d\n", mpi.ranks+1); err != nil || !strings.Contains(out, want) || !counted(out, "allreduce 5 0") {
			t.Errorf("%v, want %q\n%s", err, want, out)
		}
	})
}

// The first call of a request is MPI's, and it is so on all ranks. What took how long is said at the end, and traces
// become a page.
func TestFirstUsePassesOn(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		traces := t.TempDir()
		out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_VERBOSE=1", "TIERFLOW_PROFILE=summary", "TIERFLOW_TRACE=" + traces + ":every=1"}, mpi.program(t, "progress"))
		if want := "allreduce 4 1 first use 1"; err != nil || !counted(out, want) || strings.Count(out, "tierflow's") != 1 {
			t.Errorf("%v, want %q\n%s", err, want, out)
		}
		if strings.Count(out, "was in collectives for") != 1 || !regexp.MustCompile(`tierflow:   allreduce +i32 +sum +4B +4 `).MatchString(out) {
			t.Errorf("no summary of 4 calls:\n%s", out)
		}
		page := filepath.Join(traces, "r.html")
		root := kit.NewRoot("tierflow", "test", draw.TraceCommand(all.Submodules()))
		if status := kit.Execute(t.Context(), root, []string{"trace", "--merge", traces, "--report", page}, nil, io.Discard, t.Output()); status != 0 {
			t.Errorf("no report of the traces: status %d", status)
		} else if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "allreduce") {
			t.Errorf("the report has no allreduce: %v", err)
		}
		out, err = mpi.under(t, shim, nil, mpi.program(t, "fallbacks"))
		if want := "fallbacks: 0 wrong"; err != nil || !strings.Contains(out, want) {
			t.Errorf("%v, want %q\n%s", err, want, out)
		}
	})
}

// Whatever keeps tierflow from it, the program runs, and one line says why.
func TestPassesOn(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		prog := mpi.program(t, "fallbacks")
		lost := func(rank string) []string {
			return []string{"sh", "-c", `[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" ` + rank + ` ] && unset LD_PRELOAD; exec "$0"`, prog}
		}
		marks := t.TempDir()
		soon := []string{"TIERFLOW_JOIN_TIMEOUT=1s", "TIERFLOW_MPI_MARKS=" + marks}
		others := "rank 1"
		if mpi.ranks > 2 {
			others = "ranks 1, 2"
		}
		onOne := []string{"sh", "-c", `[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && export TIERFLOW_LIB=/nowhere/libtierflow.so; exec "$0"`, prog}
		for _, test := range []struct {
			variables, program []string
			want               string
		}{
			{[]string{"TIERFLOW_LIB=/nowhere/libtierflow.so"}, []string{prog}, "tierflow: rank 0: /nowhere/libtierflow.so: "},
			{nil, onOne, "tierflow: rank 1: /nowhere/libtierflow.so: "},
			{soon, lost("= 1"), "tierflow: rank 0: no shim in rank 1: linked statically"},
			{soon, lost("!= 0"), "tierflow: rank 0: no shim in " + others + ": "},
			{soon, lost("= 0"), ": no shim in rank 0: "},
			{[]string{"TIERFLOW_MPI=allredcue"}, []string{prog}, `tierflow: TIERFLOW_MPI="allredcue": allowed are on, off, and a list of bcast, `},
		} {
			out, err := mpi.under(t, shim, test.variables, test.program...)
			if err != nil || !strings.Contains(out, "fallbacks: 0 wrong\n") || !strings.Contains(out, test.want) || strings.Count(out, "tierflow: ") != 1 {
				t.Errorf("%v: %v, want one line %q\n%s", test.variables, err, test.want, out)
			}
		}
		if !hasMarks(marks) {
			t.Errorf("no rank with the shim has left a mark")
		}
	})
}

// The shim of another MPI says so, once, and hands everything through.
func TestWrongShim(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, _ string) {
		for _, other := range libraries {
			if other.name == mpi.name {
				continue
			}
			out, err := mpi.under(t, other.shim(t), nil, mpi.program(t, "fallbacks"))
			if err != nil || !strings.Contains(out, "fallbacks: 0 wrong\n") || strings.Count(out, "tierflow: this shim is for ") != 1 {
				t.Errorf("shim of %s: %v, want one line that says so\n%s", other.name, err, out)
			}
		}
	})
}

// Rank 0 says how each request is done, once.
func TestExplains(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_VERBOSE=explain", "TIERFLOW_PLAN=allreduce:shape=flat"}, mpi.program(t, "progress"))
		if n := strings.Count(out, "tierflow: rank 0: allreduce: allreduce 1 i32"); err != nil || n != 1 || !strings.Contains(out, "TIERFLOW_PLAN") {
			t.Errorf("%v, and %d explanations, want one with the variable\n%s", err, n, out)
		}
	})
}

// TIERFLOW_MPI says what is tierflow's.
func TestLimits(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI=bcast:121-1KiB,allreduce:1MiB,scan", "TIERFLOW_MPI_VERBOSE=1", "TIERFLOW_MPI_AFTER=1"}, mpi.program(t, "fallbacks"))
		for _, want := range []string{"bcast 0 .*, TIERFLOW_MPI [0-9]+", "allreduce 0 .*, TIERFLOW_MPI [0-9]+", "gather 0 .*, TIERFLOW_MPI [0-9]+", "scan [1-9][0-9]*"} {
			if err != nil || !strings.Contains(out, "fallbacks: 0 wrong") || !counted(out, want) {
				t.Errorf("%v, want %q\n%s", err, want, out)
			}
		}
	})
}

// A program that ends badly ends as badly as without the shim, and says as much.
func TestBadEnds(t *testing.T) {
	onEach(t, func(t *testing.T, mpi library, shim string) {
		prog := mpi.program(t, "ends")
		for _, test := range []struct{ how, want string }{
			{"segv", "Segmentation fault"},
			{"abort", ""},
			{"roots", "bcast 4 u8 root"},
		} {
			out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_AFTER=1"}, prog, test.how)
			if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(out, test.want) {
				t.Errorf("%s: %v, want a failure and %q\n%s", test.how, err, test.want, out)
			}
			if test.how == "segv" && mpi.name == "openmpi" && !strings.Contains(out, "*** End of error message ***") {
				t.Errorf("the report of a crash is lost\n%s", out)
			}
		}
		out, err := mpi.under(t, shim, []string{"TIERFLOW_MPI_AFTER=1"}, prog, "returned")
		if n := strings.Count(out, "has come to its end"); err != nil || n != mpi.ranks {
			t.Errorf("errors that are returned: %v, and %d of %d ranks come to their end\n%s", err, n, mpi.ranks, out)
		}
	})
}

// valgrind has next to nothing to say of tierflow: which system calls Go makes depends on the moment.
func TestValgrind(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("SKIPPED: valgrind is not here")
	}
	onEach(t, func(t *testing.T, mpi library, shim string) {
		prog := mpi.program(t, "progress")
		mpi.ranks = 2 // they are alike, and start slowly under valgrind
		out, err := mpi.under(t, shim, []string{"GODEBUG=cpu.rdtscp=off", "TIERFLOW_MPI_AFTER=1", "TIERFLOW_MPI_VERBOSE=1"}, "valgrind", "--suppressions="+shim+forValgrind, prog)
		about := regexp.MustCompile(`(?m)^==\d+== +(at|by) 0x.*libtierflow\.so\)$`).FindAllString(out, -1)
		if err != nil || len(about) > 10 || !counted(out, "allreduce 5 0") || !strings.Contains(out, "ERROR SUMMARY: ") {
			t.Errorf("%v, errors at %v\n%s", err, about, out)
		}
	})
}
