package local

import (
	"runtime"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels"
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

// Messages to all come behind all that their sender has sent before, once to each other rank, also while others send.
func TestPostAll(t *testing.T) {
	const n, each = 64, 20
	h := &hub{}
	var links []*link
	for r := range levels.Rank(n) {
		h.inboxes = append(h.inboxes, newInbox())
		links = append(links, &link{inbox: h.inboxes[r], hub: h, rank: r})
	}
	var wg sync.WaitGroup
	for r, l := range links {
		wg.Go(func() {
			got := order{seen: make([]int, n), ended: make([]bool, n)}
			for i := range each {
				for to := range links {
					if to != r {
						l.Post(levels.Rank(to), &wire.Message{Kind: wire.Eager, Size: 1}, []byte{1})
					}
				}
				if i%7 == r%7 {
					l.Poll(&got)
				}
			}
			if !l.PostAll(&wire.Message{Kind: wire.Bye}) {
				t.Error("not posted")
			}
			for got.byes < n-1 {
				if !l.Poll(&got) {
					runtime.Gosched()
				}
			}
			for from := range links {
				if want := each; from != r && (got.seen[from] != want || got.wrong) {
					t.Errorf("rank %d has got %d messages of rank %d before its last one, want %d; in disorder: %v", r, got.seen[from], from, want, got.wrong)
				}
			}
		})
	}
	wg.Wait()
}

// order is a sink that looks at the order of messages.
type order struct {
	wire.Sink
	seen  []int // by sender
	ended []bool
	byes  int
	wrong bool
}

func (o *order) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	o.wrong = o.wrong || o.ended[from]
	if m.Kind == wire.Bye {
		o.ended[from] = true
		o.byes++
	} else {
		o.seen[from] += len(payload)
	}
}
