package env

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ExampleUnknown() {
	for _, u := range Unknown([]string{"TIERFLOW_PLANN=fs=64KiB", "TIERFLOW_TABLE=t.json", "HOME=/"}) {
		fmt.Println(u)
	}
	// Output: TIERFLOW_PLANN has no effect: no such variable is known, the nearest is TIERFLOW_PLAN
}

func TestUnknown(t *testing.T) {
	environ := []string{
		"TIERFLOW_TABEL=1", "TIERFLOW_RANKS", "TIERFLOW_RANKS=2", "tierflow_plan=x", "TIERFLOW=x",
		"TIERFLOW_TEST_LONG=1", "TIERFLOW_CHAOS=1", "TIERFLOW_SECRET=x", "TIERFLOW_JOINTIMEOUT=9s",
		// A Service called tierflow, and what is almost one.
		"TIERFLOW_SERVICE_HOST=1", "TIERFLOW_SERVICE_PORT_JOIN=1", "TIERFLOW_PORT=tcp://1", "TIERFLOW_PORT_80_TCP_ADDR=1", "TIERFLOW_PORT_9_SCTP=1",
		"TIERFLOW_SERVICE_PORT=1", "TIERFLOW_SERVICE_HOSTS=1", "TIERFLOW_PORT__TCP=1", "TIERFLOW_PORT_8O_UDP=1", "TIERFLOW_PORT_80_HTTP=1",
	}
	want := []UnknownName{
		{"TIERFLOW_JOINTIMEOUT", "TIERFLOW_JOIN_TIMEOUT"},
		{"TIERFLOW_PORT_80_HTTP", "TIERFLOW_PORT"},
		{"TIERFLOW_PORT_8O_UDP", "TIERFLOW_PORT"},
		{"TIERFLOW_PORT__TCP", "TIERFLOW_PORT"},
		{"TIERFLOW_RANKS", "TIERFLOW_RANK"},
		{"TIERFLOW_SERVICE_HOSTS", "TIERFLOW_METRICS"},
		{"TIERFLOW_TABEL", "TIERFLOW_TABLE"},
	}
	if diff := cmp.Diff(want, Unknown(environ)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Every known name is its own nearest, and no name stands twice.
func TestNames(t *testing.T) {
	all := append(Names(), NamesOfTests()...)
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) || !slices.IsSorted(Names()) {
		t.Errorf("names %v: want them sorted, each once", all)
	}
	for _, name := range Names() {
		if got := nearest(name); got != name {
			t.Errorf("the nearest of %s is %s", name, got)
		}
	}
	if got := changes("kitten", "sitting"); got != 3 {
		t.Errorf("kitten to sitting: %d changes, want 3", got)
	}
}
