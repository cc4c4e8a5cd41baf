//go:build cgo && linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/libtierflow/abi"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// patience is after how long a program that runs is one that hangs.
const patience = 2 * time.Minute

// The header's numbers are those of package tasks: programs were built with them.
func TestHeaderNumbers(t *testing.T) {
	for name, want := range map[string]any{
		"TF_BCAST": tasks.Bcast, "TF_REDUCE": tasks.Reduce, "TF_ALLREDUCE": tasks.Allreduce, "TF_ALLGATHER": tasks.Allgather,
		"TF_GATHER": tasks.Gather, "TF_SCATTER": tasks.Scatter, "TF_REDUCE_SCATTER": tasks.ReduceScatter,
		"TF_ALLTOALL": tasks.Alltoall, "TF_BARRIER": tasks.Barrier, "TF_SCAN": tasks.Scan, "TF_EXSCAN": tasks.Exscan,
		"TF_I8": tasks.Int8, "TF_I16": tasks.Int16, "TF_I32": tasks.Int32, "TF_I64": tasks.Int64,
		"TF_U8": tasks.Uint8, "TF_U16": tasks.Uint16, "TF_U32": tasks.Uint32, "TF_U64": tasks.Uint64,
		"TF_F16": tasks.Float16, "TF_BF16": tasks.BFloat16, "TF_F32": tasks.Float32, "TF_F64": tasks.Float64,
		"TF_C64": tasks.Complex64, "TF_C128": tasks.Complex128,
		"TF_SUM": tasks.OpSum, "TF_PROD": tasks.OpProd, "TF_MIN": tasks.OpMin, "TF_MAX": tasks.OpMax,
		"TF_BAND": tasks.OpBand, "TF_BOR": tasks.OpBor, "TF_BXOR": tasks.OpBxor,
		"TF_LAND": tasks.OpLand, "TF_LOR": tasks.OpLor, "TF_LXOR": tasks.OpLxor, "TF_AVERAGE": tasks.OpAverage,
	} {
		if got, want := headerNumbers(t)[name], fmt.Sprintf("%d", want); fmt.Sprint(got) != want {
			t.Errorf("tierflow.h has %s = %d, package tasks has %s", name, got, want)
		}
	}
	if n := len(headerNumbers(t)); n != 36 {
		t.Errorf("tierflow.h has %d numbers; the table has 36", n)
	}
}

// headerNumbers reads the enumerations.
func headerNumbers(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, enum := range regexp.MustCompile(`(?s)enum \w+ \{(.*?)\}`).FindAllStringSubmatch(abi.Header, -1) {
		next := 0
		for _, item := range strings.Split(enum[1], ",") {
			name, value, given := strings.Cut(strings.TrimSpace(item), " = ")
			if given {
				if _, err := fmt.Sscan(value, &next); err != nil {
					t.Fatal(err)
				}
			}
			all[name] = next
			next++
		}
	}
	return all
}

// libraryDir is where library has built it; empty: it was not asked to.
var libraryDir string

var library = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "libtierflow")
	if err != nil {
		return "", err
	}
	libraryDir = dir
	file := filepath.Join(dir, "libtierflow.so")
	out, err := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the library: %w\n%s", err, out)
	}
	return file, err
})

func TestMain(m *testing.M) {
	os.Setenv("TIERFLOW_MACHINE", "off") // the plans are those of every machine, and nothing is kept
	status := m.Run()
	if libraryDir != "" {
		os.RemoveAll(libraryDir)
	}
	os.Exit(status)
}

// builtLibrary is the library's file.
func builtLibrary(t testing.TB) string {
	t.Helper()
	file, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// compiled builds a C program of testdata.
func compiled(t testing.TB, name string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("SKIPPED: there is no cc to build a C program with")
	}
	lib, prog := builtLibrary(t), filepath.Join(t.TempDir(), name)
	args := []string{"-O2", "-Wall", "-Werror", "-pthread", "-I", "abi", "-o", prog, "testdata/" + name + ".c", lib, "-Wl,-rpath," + filepath.Dir(lib)}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return prog
}

// runRanks runs a program as the ranks of a job, and returns what each has printed.
func runRanks(t testing.TB, n int, program ...string) []string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return runRanksAt(t, l.Addr().String(), n, program...)
}

// runRanksAt is runRanks of ranks that are told to meet at an address.
func runRanksAt(t testing.TB, at string, n int, program ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, errs := make([]string, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			c := exec.CommandContext(ctx, program[0], program[1:]...)
			c.Env = append(os.Environ(), fmt.Sprint("TIERFLOW_RANK=", r), fmt.Sprint("TIERFLOW_SIZE=", n),
				"TIERFLOW_RENDEZVOUS="+at, "TIERFLOW_SECRET=of-a-test,-and-long-enough", "TIERFLOW_LAUNCHER=tierflow")
			b, err := c.CombinedOutput()
			out[r], errs[r] = string(b), err
		})
	}
	all.Wait()
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v\n%s", r, err, out[r])
		}
	}
	return out
}

// A C program calls everything that the header has.
func TestFromC(t *testing.T) {
	runRanks(t, 3, compiled(t, "library"))
}

// A C program sends, limits and aborts its calls, and goes on without a dead rank.
func TestPeersFromC(t *testing.T) {
	runRanks(t, 4, compiled(t, "peers"))
}

// Ranks that share their invitation meet where it says, also under tierflow run, whose launcher listens for another
// job of theirs.
func TestSharedUnderALauncher(t *testing.T) {
	prog := compiled(t, "share")
	launcher, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer launcher.Close()
	t.Setenv("SHARE_FILE", filepath.Join(t.TempDir(), "invitation"))
	for rank, got := range runRanksAt(t, launcher.Addr().String(), 3, prog) {
		if got != "3\n" {
			t.Errorf("rank %d prints %q, want the sum 3", rank, got)
		}
	}
}

// A call allocates nothing once its request is known: a million calls do not make Go's heap
// grow by the 4 MiB after which it is collected first.
func TestCallsAllocateNothing(t *testing.T) {
	prog := compiled(t, "calls")
	t.Setenv("GODEBUG", "gctrace=1")
	before := strings.Count(runRanks(t, 1, prog, "1000")[0], "gc ")
	out := runRanks(t, 1, prog, "1000000")[0]
	if n := strings.Count(out, "gc "); n > before {
		t.Errorf("the heap is collected %d times in a million calls, %d times in a thousand\n%s", n, before, out)
	}
}

// BenchmarkCall is an allreduce of 8 bytes on one rank, by tf_call from C and by Run from Go: their
// difference is what the library adds to a call.
func BenchmarkCall(b *testing.B) {
	b.Run("from=C", func(b *testing.B) {
		prog := compiled(b, "calls")
		for b.Loop() { // a run of the program is an iteration, and says itself what a call takes
			var ns float64
			if _, err := fmt.Sscan(runRanks(b, 1, prog, "1000000")[0], &ns); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ns, "ns/call")
		}
	})
	b.Run("from=Go", func(b *testing.B) {
		comm, err := planner.Join(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer comm.Close()
		one, all := []float64{1}, []float64{0}
		sum, err := planner.PrepareAllreduce(b.Context(), comm, one, all, tasks.Sum)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := sum.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/call")
	})
}

// The package tierflow gives numpy's answers for random arrays, refuses what can't be, and is interrupted by Ctrl-C. The
// examples sum up arrays, and go on without a dead rank.
func TestFromPython(t *testing.T) {
	python := pythonWith(t, "numpy")
	seed := fmt.Sprint(rand.Uint32())
	t.Log("seed", seed)
	for _, program := range []struct {
		file, arg            string
		rank0, rank1, others string
	}{
		{"testdata/numpy_ranks.py", seed, "well\n", "well\n", "well\n"},
		{"example/allreduce.py", "", "[6.0, 6.0, 6.0, 6.0, 6.0]\n", "[6.0, 6.0, 6.0, 6.0, 6.0]\n", "[6.0, 6.0, 6.0, 6.0, 6.0]\n"},
		{"example/survive.py", "", "2 messages\nstep 1: 3 ranks\nstep 2: 2 ranks\nstep 3: 2 ranks\n", "step 1: 3 ranks\n", "step 1: 3 ranks\nstep 2: 2 ranks\nstep 3: 2 ranks\n"},
	} {
		t.Run(program.file, func(t *testing.T) {
			t.Setenv("PYTHONPATH", "python")
			t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			t.Setenv("TIERFLOW_LIB", builtLibrary(t))
			got := runRanks(t, 3, python, program.file, program.arg)
			for r, want := range []string{program.rank0, program.rank1, program.others} {
				if got[r] != want {
					t.Errorf("rank %d prints %q, want %q", r, got[r], want)
				}
			}
		})
	}
}

// pip installs the package without a network, and the library in it.
func TestPipInstall(t *testing.T) {
	python := pythonWith(t, "numpy, pip")
	to := t.TempDir()
	install := exec.Command(python, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet", "--target", to, "./python")
	install.Env = append(os.Environ(), "TIERFLOW_LIB="+builtLibrary(t), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PYTHONPATH", to)
	if got := runRanks(t, 2, python, "-c", "import tierflow; print(tierflow.world().allgather('x'))"); got[1] != "['x', 'x']\n" {
		t.Errorf("rank 1 prints %q", got[1])
	}
}

// pythonWith is a python3 that has a module.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	t.Skip("SKIPPED: there is no python3 with " + module)
	return ""
}
