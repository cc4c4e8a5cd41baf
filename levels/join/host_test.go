package join

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

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

// A connection that is no rank's that joins is closed, and forgotten.
func TestHostClosesOthers(t *testing.T) {
	h := &host{open: map[net.Conn]bool{}}
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	h.admit(greeting{purpose: purposeTree}, near)
	near.SetDeadline(time.Unix(1, 0)) // to an open one nothing could be written now
	if _, err := near.Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) || len(h.open) > 0 {
		t.Errorf("%v, %d connections are kept", err, len(h.open))
	}
}
