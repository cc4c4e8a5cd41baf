package local

import (
	"testing"

	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
)

// newLinks are two goroutine ranks, with rings or without.
func newLinks(rings bool) (a, b *link) {
	h := &hub{inboxes: []*inbox{newInbox(), newInbox()}}
	if rings {
		h.pairs = newPairs(2)
	}
	a, b = &link{inbox: h.inboxes[0], hub: h, rank: 0}, &link{inbox: h.inboxes[1], hub: h, rank: 1}
	a.RingTo(1)
	return a, b
}

func TestLink(t *testing.T) {
	for _, rings := range []bool{false, true} {
		wiretest.Run(t, func(*testing.T) (wiretest.Port, wiretest.Port) {
			a, b := newLinks(rings)
			return wiretest.Port{Link: a, Sleeper: a}, wiretest.Port{Link: b, Sleeper: b}
		})
	}
}

// A link that is disturbed is still a link.
func TestFaultyLink(t *testing.T) {
	wiretest.Run(t, func(*testing.T) (wiretest.Port, wiretest.Port) {
		a, b := newLinks(true)
		over := func(l *link) wiretest.Port {
			f := faulty.New(faulty.Under{Link: l, Sleeper: l, Memory: wire.OneProcess{}}, l.rank, 2, faulty.Faults{Seed: 1})
			return wiretest.Port{Link: f, Sleeper: f}
		}
		return over(a), over(b)
	})
}
