package peers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
)

// The shim is loaded by the ranks of a setting with it, on one node and several.
func TestShimCommands(t *testing.T) {
	s := site{nodes: 1, perNode: 2, folder: "DIR", bind: bindNone, so: "lib.so"}
	c := cells{[]string{"bcast"}, []int64{8}}
	for _, test := range []struct{ library, want string }{
		{openMPI, " -x LD_PRELOAD=DIR/openmpi-shim.so -x TIERFLOW_LIB=lib.so -x TIERFLOW_MANAGED=1 DIR/openmpi bcast 8 "},
		{mpich, " -genv LD_PRELOAD DIR/mpich-shim.so -genv TIERFLOW_LIB lib.so -genv TIERFLOW_MANAGED 1 DIR/mpich bcast 8 "},
	} {
		plain := strings.Join(s.jobCommand(setting{library: test.library}, c, time.Second, "DIR"), " ")
		with := strings.Join(s.jobCommand(setting{library: test.library, shimmed: true}, c, time.Second, "DIR"), " ")
		if !strings.Contains(with, test.want) || strings.Contains(plain, "shim") {
			t.Errorf("%s: %q without, %q with the shim, want %q", test.library, plain, with, test.want)
		}
	}
}

// Ratios are of the same round. What was measured one way only has none, and is no cell.
func TestShimTable(t *testing.T) {
	var all peerTable
	for _, round := range [][2]float64{{10, 5}, {20, 4}, {10, 10}} {
		row := peerRow{Collective: "bcast", Bytes: 8, P50: round[0]}
		all.addRows(setting{library: openMPI, variant: plain}, "mpirun DIR/openmpi", []peerRow{row})
		row.P50 = round[1]
		all.addRows(setting{library: openMPI, variant: withShim}, "mpirun -x DIR/openmpi", []peerRow{row, {Collective: "bcast", Bytes: 16, P50: 1}})
	}
	all.Missing = []missingPeer{{mpich, "mpich", "no compiler"}}
	table := newShimTable(&all)
	if want := (shimCell{Library: openMPI, Collective: "bcast", Bytes: 8, Plain: 10, Shim: 5, Ratio: .5, Least: .2, Largest: 1}); len(table.Cells) != 1 || table.Cells[0] != want {
		t.Errorf("cells %+v, want %+v alone", table.Cells, want)
	}
	if len(table.Commands) != 2 || len(table.Failures) != 1 || !strings.Contains(table.Failures[0], "without MPICH") {
		t.Errorf("commands %q, failures %q", table.Commands, table.Failures)
	}
	var out bytes.Buffer
	if err := labkit.Print(&out, false, nil, labkit.Right, table.print); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bcast     8B     10.00     5.00   0.50      0.20–1.00", "# Open MPI: geometric mean of 1 ratios 0.50; the largest is 0.50, of bcast of 8B"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// A fake MPI is measured both ways, with a shim that is built first.
func TestShimWithFakeDriver(t *testing.T) {
	tools := t.TempDir()
	script(t, filepath.Join(tools, "mpirun.openmpi"), `p50=8; case "$*" in *LD_PRELOAD*) p50=4;; esac
for op in bcast pingpong; do echo "{\"collective\":\"$op\",\"bytes\":64,\"p50_us\":$p50}"; done`)
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	p := &place{site: site{nodes: 1, perNode: 2, bind: bindNone, folder: t.TempDir(), tierflow: filepath.Join(tools, "tierflow")}}
	script(t, p.tierflow, `echo "$@" >"$0.called"`)
	mpi := peer{openMPI, "openmpi", []string{"true"}, "mpi.c", nil}
	b := &benchShim{benchPeers{site: p.site, rounds: 2, time: time.Millisecond, cells: cells{[]string{"bcast"}, []int64{64}}, others: []peer{mpi}, json: true}}
	var out, notes bytes.Buffer
	if err := b.compare(t.Context(), p, &out, &notes); err == nil || !strings.Contains(err.Error(), "libtierflow.so") {
		t.Fatalf("without a library: %v", err)
	}
	script(t, filepath.Join(tools, "libtierflow.so"), "")
	b.cells.ops, p.so = []string{"bcast"}, ""
	if err := b.compare(t.Context(), p, &out, &notes); err != nil {
		t.Fatalf("%v\n%s", err, &notes)
	}
	table := kittest.Decode[shimTable](t, out.String())
	if len(table.Cells) != 2 || table.Cells[0].Ratio != .5 || table.Cells[1].Collective != pingPong || len(table.Failures) > 0 {
		t.Errorf("%+v\n%s", table, &notes)
	}
	if called := kittest.Contents(t, p.tierflow+".called"); called != "mpi build --mpicc true -o "+p.shim(openMPI)+"\n" {
		t.Errorf("the shim was built by %q", called)
	}
}
