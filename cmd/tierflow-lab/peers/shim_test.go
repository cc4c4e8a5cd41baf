package peers

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// The shim is loaded by the ranks of a setting with it, on one node and several.
func TestShimCommands(t *testing.T) {
	s := site{nodes: 1, perNode: 2, folder: "DIR", bind: bindNone, so: "lib.so"}
	c := cells{[]string{"bcast"}, []int64{8}}
	for _, test := range []struct{ library, want string }{
		{openMPI, " -x LD_PRELOAD=DIR/openmpi-shim.so -x TIERFLOW_LIB=lib.so DIR/openmpi bcast 8 "},
		{mpich, " -genv LD_PRELOAD DIR/mpich-shim.so -genv TIERFLOW_LIB lib.so DIR/mpich bcast 8 "},
	} {
		plain := strings.Join(s.jobCommand(setting{library: test.library}, c, time.Second, "DIR"), " ")
		with := strings.Join(s.jobCommand(setting{library: test.library, shimmed: true}, c, time.Second, "DIR"), " ")
		if !strings.Contains(with, test.want) || strings.Contains(plain, "shim") {
			t.Errorf("%s: %q without, %q with the shim, want %q", test.library, plain, with, test.want)
		}
	}
}

// Ratios are of the same round; what was measured one way only has none.
func TestShimTable(t *testing.T) {
	var table shimTable
	all := map[string]*shimCell{}
	for _, round := range [][2]float64{{10, 5}, {20, 4}, {10, 10}} {
		row := peerRow{Collective: "bcast", Bytes: 8, P50: round[1]}
		table.add(all, openMPI, []peerRow{row, {Collective: "bcast", Bytes: 16, P50: 1}}, map[string]peerRow{"bcast8": {Collective: "bcast", Bytes: 8, P50: round[0]}})
	}
	table.sum()
	var out bytes.Buffer
	if err := table.print(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bcast     8B     10.00     5.00   0.50      0.20–1.00", "# Open MPI: geometric mean of 1 ratios 0.50; the largest is 0.50, of bcast of 8B"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
