package simulate

import (
	"math"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// One node stands for all where nodes are equal and do the same, and that is said. Else all
// are simulated.
func TestStandsForAll(t *testing.T) {
	for _, test := range []struct {
		args  string
		nodes int // that the simulated one stands for; 0: all are simulated
	}{
		{"alltoall --topo 16x4 --bytes 64KiB", 16},
		{"alltoall --topo 8x2 --bytes 64KiB --plan shape=flat,i=nbc/bruck", 8},
		{"allgather --topo 6x2 --bytes 64KiB --plan shape=flat,i=nbc/ring", 6},
		{"alltoall --topo 6x4 --bytes 1KiB", 0},
		{"alltoall --topo 4x4/rr --bytes 1KiB", 0},
		{"alltoall --topo 8x2 --bytes 1KiB --path 1", 0},
		{"bcast --topo 4x2 --bytes 64KiB", 0},
	} {
		args := append([]string{"simulate"}, strings.Fields(test.args)...)
		whole := kittest.Decode[report](t, tierflow.Succeeds(t, append(args, "--json")...))
		usual := mostWhole
		mostWhole = 0
		one := kittest.Decode[report](t, tierflow.Succeeds(t, append(args, "--json")...))
		text := tierflow.Succeeds(t, args...)
		mostWhole = usual
		if whole.StandsFor != 0 || one.StandsFor != test.nodes || math.Abs(one.NS/whole.NS-1) > 0.01 || one.Steps != whole.Steps {
			t.Errorf("%s: %v ns, %d steps; one node for %d: %v ns, %d steps", test.args, whole.NS, whole.Steps, one.StandsFor, one.NS, one.Steps)
		}
		if said := strings.Contains(text, "equal nodes was simulated, and stands for all"); said != (test.nodes > 0) {
			t.Errorf("%s prints\n%s", test.args, text)
		}
	}
}
