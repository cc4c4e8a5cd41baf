package executor

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// rankSet is some ranks of a communicator or of the world.
type rankSet []uint64

func newRankSet(n int) rankSet { return make(rankSet, (n+63)/64) }

func (s rankSet) set(r int32) {
	if r >= 0 { // a message may come from a rank that isn't in the communicator
		s[r/64] |= 1 << (r % 64)
	}
}

func (s rankSet) has(r int32) bool { return int(r/64) < len(s) && s[r/64]>>(r%64)&1 != 0 }

// count is how many there are.
func (s rankSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// present tells a rank of the world that this one is, or was, in a run.
func (c *Comm) present(peer levels.Rank, seq, digest uint32) {
	c.e.transmit(peer, &wire.Message{Kind: wire.Probe, Comm: c.id, Seq: seq, Digest: digest}, nil)
}

// hasCome notes that a rank is in a run, r if this one is in it now. To the
// question in a probe this rank answers with one, so that a rank which waits for
// it knows that it has come and waits itself: it is not the one that is missing.
func (c *Comm) hasCome(from levels.Rank, r *Run, m *wire.Message) {
	n := c.number(from)
	switch {
	case n < 0:
	case r != nil:
		r.came.set(int32(n))
		if m.Kind == wire.Probe && r.digest == m.Digest && !r.told.has(int32(n)) {
			r.told.set(int32(n))
			c.present(from, r.seq, r.digest)
		}
	case m.Kind == wire.Probe && c.over(m.Seq):
		if p := c.remembered(m.Seq); p.seq == m.Seq && p.digest == m.Digest {
			c.present(from, m.Seq, m.Digest)
		}
	}
}

// peers are the ranks that the run waits for, ascending: those that have not come;
// if all have, here is true and it is all of them.
func (r *Run) peers() (list []string, here bool) {
	var absent, all []levels.Rank
	r.stuck(func(_ *submodules.Step, peer levels.Rank) {
		n := r.comm.number(peer)
		all = append(all, n)
		if !r.came.has(int32(n)) {
			absent = append(absent, n)
		}
	})
	here = len(absent) == 0
	if !here {
		all = absent
	}
	slices.Sort(all)
	for i, n := range slices.Compact(all) {
		if i == maxWaits {
			return append(list, "…"), here
		}
		list = append(list, fmt.Sprintf("r%d", n))
	}
	return list, here
}

// absent names the ranks that are waited for and have not come: r4,r7, or none.
func (r *Run) absent() string {
	if list, here := r.peers(); !here {
		return strings.Join(list, ",")
	}
	return "none"
}

// waitsFor says for whom the run waits, since when, and what for: waits for r4
// since 2.0 s: ib#3 recv r4>r5 64KiB.
func (r *Run) waitsFor() string {
	list, here := r.peers()
	if len(list) == 0 {
		return "on its way"
	}
	text := "waits for " + strings.Join(list, ",")
	if here {
		text += " (in the call too)"
	}
	if !r.moved && !r.since.IsZero() {
		text += fmt.Sprintf(" since %.1f s", time.Since(r.since).Seconds())
	}
	return text + ": " + r.waits()
}

// noteWait records that the run has stood still for that long.
func (r *Run) noteWait(long time.Duration) {
	e := flight.Event{Comm: uint64(r.comm.id), Seq: r.seq, Pass: r.pass, Peer: -1, Edge: -1}
	r.stuck(func(s *submodules.Step, peer levels.Rank) {
		if e.Peer < 0 {
			e.Peer, e.Edge, e.Bytes = int32(peer), s.Edge, s.Len()
		}
	})
	if e.Peer >= 0 { // not a long operation of the caller's
		r.comm.e.flight.Wait(e, long, r.waits())
	}
}
