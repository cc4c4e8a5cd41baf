package levels_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
)

// A smaller machine has the first ranks of the first nodes, whatever the numbering.
func TestPick(t *testing.T) {
	for _, test := range []struct {
		topo           string
		nodes, perNode int
		want           []levels.Rank
		err            string
	}{
		{"4x2", 3, 2, []levels.Rank{0, 1, 2, 3, 4, 5}, ""},
		{"4x2", 3, 1, []levels.Rank{0, 2, 4}, ""},
		{"3x2/rr", 2, 2, []levels.Rank{0, 1, 3, 4}, ""},
		{"4x2", 5, 1, nil, "machine 5x1: allowed are 1 to 4 nodes, and 1 rank a node or more"},
		{"4x2", 1, 0, nil, "machine 1x0: allowed are 1 to 4 nodes, and 1 rank a node or more"},
		{"a:2,b:1", 2, 2, nil, "machine 2x2: node 1 has 1 ranks"},
	} {
		topo := parse(t, test.topo)
		got, err := topo.Pick(test.nodes, test.perNode)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" || text != test.err {
			t.Errorf("%dx%d of %s: %s, %q", test.nodes, test.perNode, test.topo, diff, text)
		}
	}
}
