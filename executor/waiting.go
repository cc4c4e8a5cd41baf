package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// eachStuck calls f for each step of the running pass that waits for its peer.
func (r *Run) eachStuck(f func(s *submodules.Step, peer levels.Rank)) {
	for i := range r.steps {
		s := &r.steps[i]
		if s.Peer >= 0 && r.flags[i]&(reached|ended) == reached {
			f(s, r.peerOf(s))
		}
	}
}

// awaitedPeers returns the ranks that the run waits for and that have not come,
// ascending. If all have come, it returns all of them, and here is true.
func (r *Run) awaitedPeers() (list []string, here bool) {
	var absent, all []levels.Rank
	r.eachStuck(func(_ *submodules.Step, peer levels.Rank) {
		n := r.comm.numberOf(peer)
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

// absentPeers names the ranks that are waited for and have not come: r4,r7, or none.
func (r *Run) absentPeers() string {
	if list, here := r.awaitedPeers(); !here {
		return strings.Join(list, ",")
	}
	return "none"
}

// describeWait returns for whom the run waits, since when, and what for: waits for r4
// since 2.0 s: ib#3 recv r4>r5 64KiB.
func (r *Run) describeWait() string {
	list, here := r.awaitedPeers()
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
	return text + ": " + r.awaitedSteps()
}

// awaitedSteps returns what the run waits for, from ranks that have not come first:
// ib#3 recv r4>r5 64KiB, ….
func (r *Run) awaitedSteps() string {
	var labels, others []string
	r.eachStuck(func(s *submodules.Step, peer levels.Rank) {
		if r.came.has(r.comm.local[peer]) {
			others = append(others, r.prog.Label(s))
		} else {
			labels = append(labels, r.prog.Label(s))
		}
	})
	labels = append(labels, others...)
	more := max(0, len(labels)-maxWaits)
	text := strings.Join(labels[:len(labels)-more], ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Waiting says, for each run and transfer that is on its way on this rank, what it
// waits for.
func (e *Endpoint) Waiting() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listWaiting()
}

// listWaiting is [Endpoint.Waiting] with the lock held.
func (e *Endpoint) listWaiting() []string {
	var all []string
	for _, r := range e.runs {
		all = append(all, fmt.Sprintf("rank %d, %s: %s", r.comm.me, r.b.Request, r.describeWait()))
	}
	for _, c := range e.comms {
		for _, t := range c.sends {
			all = append(all, fmt.Sprintf("rank %d, send %d bytes to rank %d, tag %d", c.me, len(t.buf), c.numberOf(t.peer), t.tag))
		}
		receives := func(t *Transfer) {
			all = append(all, fmt.Sprintf("rank %d, receive from rank %d, tag %d", c.me, c.numberOf(t.peer), t.tag))
		}
		for t := range c.recvs.all() {
			receives(*t)
		}
		for t := range c.wild.all() {
			all = append(all, fmt.Sprintf("rank %d, receive from any rank, tag %d", c.me, (*t).tag))
		}
		for _, t := range c.given {
			receives(t)
		}
	}
	slices.Sort(all)
	return all
}
