package join

import (
	"slices"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

// Who gave up waiting is not to blame, as long as there is somebody who never came.
func TestCulprits(t *testing.T) {
	here := &Peer{}
	for _, c := range []struct {
		peers  []*Peer
		gaveUp map[levels.Rank]bool
		want   []levels.Rank
	}{
		{[]*Peer{here, nil, here, nil}, map[levels.Rank]bool{}, []levels.Rank{1, 3}},
		{[]*Peer{here, nil, here, nil}, map[levels.Rank]bool{1: true}, []levels.Rank{3}},
		{[]*Peer{here, nil, here, nil}, map[levels.Rank]bool{1: false}, []levels.Rank{1, 3}}, // it died
		{[]*Peer{here, nil, here, nil}, map[levels.Rank]bool{1: true, 3: true}, []levels.Rank{1, 3}},
	} {
		h := &host{peers: c.peers, gaveUp: c.gaveUp}
		if got := h.culprits(); !slices.Equal(got, c.want) {
			t.Errorf("%d ranks, gave up %v: got %v, want %v", len(c.peers), c.gaveUp, got, c.want)
		}
	}
}
