package tasks

import "testing"

// Groups are subtrees of the tree over all ranks if each but the last has the same power of two of ranks.
func TestWholeSubtrees(t *testing.T) {
	for topo, want := range map[string]bool{
		"2x2": true, "4x4": true, "3x2": true, "2x3": false, "3x1": true, "1x5": true, "2x2x2": true, "2x2x3": false, "a:2,b:1": true, "a:1,b:2": false, "2x2/rr": false,
	} {
		if got := wholeSubtrees(parsed(t, topo).Hierarchy(0)); got != want {
			t.Errorf("%s: %v, want %v", topo, got, want)
		}
	}
}
