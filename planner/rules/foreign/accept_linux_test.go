package foreign

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// program calls collectives at five sizes.
const program = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  long sizes[] = {8, 4096, 4104, 65536, 262144};
  char *a = calloc(1, 1 << 22), *b = calloc(1, 1 << 22);
  for (int i = 0; i < 5; i++) {
    MPI_Bcast(a, sizes[i], MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Reduce(a, b, sizes[i] / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(a, b, sizes[i] / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(a, sizes[i] / size, MPI_CHAR, b, sizes[i] / size, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Alltoall(a, sizes[i] / size, MPI_CHAR, b, sizes[i] / size, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Gather(a, sizes[i] / size, MPI_CHAR, b, sizes[i] / size, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Scatter(a, sizes[i] / size, MPI_CHAR, b, sizes[i] / size, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Scan(a, b, sizes[i] / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(a, b, sizes[i] / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(a, b, sizes[i] / 8 / size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("DONE\n");
  return MPI_Finalize();
}
`

// shim says which algorithm Open MPI calls on rank 0: coll_base_verbose says it only where the
// library was built for debugging. A call inside another one is not of the program.
const shim = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef long (*call)(long, long, long, long, long, long, long, long, long, long);
static int depth;
#define NAME(n) long n(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) { \
  static call next; \
  if (!next) next = (call)dlsym(RTLD_NEXT, #n); \
  char *rank = getenv("OMPI_COMM_WORLD_RANK"); \
  if (depth++ == 0 && rank && !strcmp(rank, "0")) fprintf(stderr, "CALL %s\n", #n); \
  long r = next(a, b, c, d, e, f, g, h, i, j); \
  depth--; \
  return r; \
}
`

// functions are Open MPI's names of what the rules of the test ask for.
var functions = map[string]string{
	"ib=adapt/binomial": "bcast_intra_binomial", "ib=adapt/chain": "bcast_intra_pipeline", "iag=nbc/ring bcast": "bcast_intra_scatter_allgather_ring",
	"ir=adapt/binomial": "reduce_intra_binomial", "ir=adapt/binary": "reduce_intra_binary",
	"iar=nbc/recdoubling": "allreduce_intra_recursivedoubling", "iar=adapt/ring": "allreduce_intra_ring_segmented",
	"iag=nbc/bruck": "allgather_intra_bruck", "iag=nbc/ring": "allgather_intra_ring",
	"ia=nbc/bruck": "alltoall_intra_bruck", "ia=nbc/pairwise": "alltoall_intra_pairwise",
}

const accepted = `
alltoallv: default
bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial elif bytes < 64KiB then shape=flat,ib=adapt/chain/8KiB else shape=flat-sag,is=nbc/binomial,iag=nbc/ring
reduce: if bytes < 64KiB then shape=flat,ir=adapt/binomial else shape=flat,ir=adapt/binary/32KiB
allreduce: if bytes <= 64KiB then shape=flat-ar,iar=nbc/recdoubling else shape=flat-ar,iar=adapt/ring/16KiB
allgather: if total <= 4KiB then shape=flat,iag=nbc/bruck else shape=flat,iag=nbc/ring
alltoall: if total <= 4KiB then shape=flat,ia=nbc/bruck else shape=flat,ia=nbc/pairwise
`

// build compiles a C program or library; without a compiler of the library the test is skipped.
func build(t *testing.T, compiler, name, text string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no %s here: the library is not installed", compiler)
	}
	dir := t.TempDir()
	source, out := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(compiler, slices.Concat([]string{source, "-o", out}, flags)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, said)
	}
	return out
}

// run runs a job and returns what it says.
func run(t *testing.T, environ []string, words ...string) string {
	t.Helper()
	if _, err := exec.LookPath(words[0]); err != nil {
		t.Skipf("no %s here: the library is not installed", words[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = append(os.Environ(), environ...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "DONE") {
		t.Fatalf("%v: %v\n%.4000s", words, err, out)
	}
	return string(out)
}

// written puts a text in a file.
func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// The installed Open MPI calls the algorithms that its file asks for, at five sizes.
func TestOpenMPIAccepts(t *testing.T) {
	version, err := exec.Command("mpirun.openmpi", "--version").CombinedOutput()
	if err != nil {
		t.Skip("no mpirun.openmpi here: Open MPI is not installed")
	}
	if !regexp.MustCompile(`\((Open MPI|OpenRTE)\) [45]\.`).Match(version) {
		t.Skipf("%.60s: the file is for 4.1 and 5.0", version)
	}
	prog := build(t, "mpicc.openmpi", "prog", program)
	text := shim
	for _, f := range functions {
		text += fmt.Sprintf("NAME(ompi_coll_base_%s)\n", f)
	}
	library := build(t, "cc", "shim.so", text, "-shared", "-fPIC", "-ldl")
	b := parse(t, accepted)
	file, notes := WriteClassic(b, Layout{}, For4)
	if len(notes) > 0 {
		t.Error(notes)
	}
	out := run(t, nil, "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3", "-x", "LD_PRELOAD="+library,
		"--mca", "coll_han_priority", "0", "--mca", "mpi_yield_when_idle", "1",
		"--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_dynamic_rules_filename", written(t, file), prog)
	called := map[string][]string{} // by collective
	for _, m := range regexp.MustCompile(`CALL ompi_coll_base_(([a-z]+)_\w+)`).FindAllStringSubmatch(out, -1) {
		called[m[2]] = append(called[m[2]], m[1])
	}
	for _, coll := range []string{"bcast", "reduce", "allreduce", "allgather", "alltoall"} {
		c := findCollective(coll)
		var want []string
		for _, size := range []int64{8, 4096, 4104, 65536, 262144} {
			if c.size == "total" {
				size = size / 3 * 3
			}
			want = append(want, functionOf(t, coll, decided(b, c, 3, size)))
		}
		if !slices.Equal(called[coll], want) {
			t.Errorf("%s calls %q, want %q\n%s", coll, called[coll], want, file)
		}
	}
}

// functionOf returns Open MPI's function for a plan of the test's rules.
func functionOf(t *testing.T, coll, plan string) string {
	t.Helper()
	for key, f := range functions {
		words := strings.Fields(key)
		if (len(words) == 1 || words[1] == coll) && strings.HasPrefix(f, coll+"_") && regexp.MustCompile(`,`+words[0]+`\b`).MatchString(plan) {
			return f
		}
	}
	t.Fatalf("%s: no function for %s", coll, plan)
	return ""
}

// bySize asks for bytes of each collective that a table may be of, as rules of tables do.
const bySize = `
bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else shape=flat-sag,is=nbc/binomial,iag=nbc/ring
reduce: if bytes < 64KiB then shape=flat,ir=adapt/binomial else shape=flat,ir=nbc/rabenseifner
allreduce: if bytes <= 64KiB then shape=flat-ar,iar=nbc/recdoubling else shape=flat-ar,iar=nbc/rabenseifner
allgather: if bytes <= 4KiB then shape=flat,iag=nbc/bruck else shape=flat,iag=nbc/ring
alltoall: if bytes <= 4KiB then shape=flat,ia=nbc/bruck else shape=flat,ia=nbc/pairwise
gather: if bytes <= 4KiB then default else shape=flat,ig=nbc/binomial
scatter: if bytes <= 4KiB then default else shape=flat,is=nbc/binomial
scan: if bytes <= 4KiB then shape=flat,ix=nbc/recdoubling else default
exscan: if bytes <= 4KiB then shape=flat,iex=nbc/recdoubling else default
reducescatter: if bytes <= 4KiB then shape=flat,irs=nbc/halving else shape=flat,irs=nbc/pairwise
`

// The installed MPICH runs with the files of algorithms and of compositions. It ends programs
// whose files it does not like.
func TestMPICHAccepts(t *testing.T) {
	prog := build(t, "mpicc.mpich", "prog", program)
	for _, c := range []struct {
		rules        string
		compositions bool
	}{
		{accepted + "reducescatter: shape=flat,irs=nbc/halving\n", false},
		{bySize, false},
		{"bcast: if nodes > 1 and bytes <= 1MiB then shape=han,ib=adapt/binomial else shape=flat\nallreduce: if bytes > 1KiB then shape=ar", true},
	} {
		variable := "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
		if c.compositions {
			variable = "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"
		}
		file, _, err := WriteMPICH(parse(t, c.rules), Layout{}, c.compositions)
		if err != nil {
			t.Fatal(err)
		}
		run(t, []string{variable + "=" + written(t, file)}, "mpiexec.hydra", "-n", "2", prog)
	}
}

// The installed Open MPI's HAN reads its file: it prints the rules that it has.
func TestHANAccepts(t *testing.T) {
	prog := build(t, "mpicc.openmpi", "prog", program)
	file, _ := WriteHAN(parse(t, "bcast: if bytes < 64KiB then default else shape=han,fs=64KiB\nallreduce: if ranks < 3 then default else shape=ar"), Layout{}, For4)
	out := run(t, nil, "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3", "--mca", "coll_han_priority", "100",
		"--mca", "coll_han_use_dynamic_file_rules", "1", "--mca", "coll_han_dynamic_rules_filename", written(t, file), "--mca", "coll_han_dump_dynamic_rules", "1", "--mca", "coll_base_verbose", "10", prog)
	for _, want := range []string{"read 4 rules", "(allreduce) topology level 2 (global_communicator) configuration size 3 mesage size 0 -> collective component 6 (han)", "(bcast) topology level 2 (global_communicator) configuration size 1 mesage size 65536 -> collective component 6 (han)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%.6000s\n%s", want, out, file)
		}
	}
}
