package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/ranges"
	"github.com/tierflow/tierflow/submodules"
)

// eachStuck calls f for each step of the running pass waiting for its peer.
func (r *Run) eachStuck(f func(s *submodules.Step, peer levels.Rank)) {
	for i := range r.steps {
		s := &r.steps[i]
		if s.Peer >= 0 && r.flags[i]&(reached|ended) == reached {
			f(s, r.peerOf(s))
		}
	}
}

// awaitedPeers returns the awaited ranks not known to be in the call, ascending. If there are none,
// it returns all awaited ranks, and here is true.
func (r *Run) awaitedPeers() (list []string, here bool) {
	var absent, all []levels.Rank
	r.eachStuck(func(_ *submodules.Step, peer levels.Rank) {
		n := r.comm.numberOf(peer)
		all = append(all, n)
		if !r.present.has(int32(n)) {
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

// absentPeers names the awaited ranks not known to be in the call: r4,r7, or none.
func (r *Run) absentPeers() string {
	if list, here := r.awaitedPeers(); !here {
		return strings.Join(list, ",")
	}
	return "none"
}

// describeWait returns the run's wait: waits for r4 since 2.0 s: ib#3 recv r4>r5 64KiB.
func (r *Run) describeWait() string {
	list, here := r.awaitedPeers()
	if len(list) == 0 && r.called.IsZero() {
		return "on its way"
	}
	if len(list) == 0 {
		return fmt.Sprintf("in %s since %.1f s", inOperation, time.Since(r.called).Seconds())
	}
	text := "waits for " + strings.Join(list, ",")
	if here {
		text += " (in the call too)"
	}
	if !r.hasMoved && !r.since.IsZero() {
		text += fmt.Sprintf(" since %.1f s", time.Since(r.since).Seconds())
	}
	return text + ": " + r.awaitedSteps()
}

// inOperation is what a call waits for that waits for no other rank.
const inOperation = "an operation of the program"

// awaitedSteps returns the labels of the waiting steps, those for absent ranks first: ib#3 recv
// r4>r5 64KiB, ….
func (r *Run) awaitedSteps() string {
	var labels, others []string
	r.eachStuck(func(s *submodules.Step, peer levels.Rank) {
		if r.present.has(r.comm.local[peer]) {
			others = append(others, r.prog.Label(s))
		} else {
			labels = append(labels, r.prog.Label(s))
		}
	})
	labels = append(labels, others...)
	if len(labels) == 0 && !r.called.IsZero() {
		return inOperation
	}
	more := max(0, len(labels)-maxWaits)
	text := strings.Join(labels[:len(labels)-more], ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// listWaiting describes the wait of each run and transfer on its way on this rank. The lock is held.
func (e *Endpoint) listWaiting() []string {
	var all []string
	for _, r := range e.runs {
		all = append(all, fmt.Sprintf("rank %d, %s: %s", r.comm.me, r.b.Request, r.describeWait()))
	}
	e.comms.eachTransfer(&e.puts, func(t *Transfer, way string, _ bool) {
		all = append(all, fmt.Sprintf("rank %d, %s", t.comm.me, t.name(way)))
	})
	slices.Sort(all)
	return all
}

// The ways of transfers.
const (
	sendWay = "send"
	recvWay = "receive"
)

// eachTransfer calls f for each transfer on its way to or from one rank, those among its puts
// included. moves: its bytes are on their way, so its peer has come.
func (t commTable) eachTransfer(p *puts, f func(t *Transfer, way string, moves bool)) {
	for _, c := range t {
		for _, t := range c.sends {
			f(t, sendWay, false)
		}
		for t := range c.recvs.all() {
			f(*t, recvWay, false)
		}
		for t := range c.anyRecvs.all() {
			f(*t, recvWay, false)
		}
		for _, t := range c.movingRecvs {
			f(t, recvWay, true)
		}
	}
	for _, by := range p.all {
		if by.transfer != nil {
			f(by.transfer, sendWay, true)
		}
	}
}

// awaitedBy says what a transfer lacks at its peer.
var awaitedBy = map[string]string{sendWay: "a receive", recvWay: "a message"}

// name describes the transfer: receive from rank 1, tag 5.
func (t *Transfer) name(way string) string {
	if t.peer == anyRank {
		return fmt.Sprintf("receive from any rank, tag %d", t.tag)
	}
	to := t.comm.numberOf(t.peer)
	if way == sendWay {
		return fmt.Sprintf("send %d bytes to rank %d, tag %d", len(t.buf), to, t.tag)
	}
	return fmt.Sprintf("receive from rank %d, tag %d", to, t.tag)
}

// unmatched is name of a receive without a message, with the tags of messages that wait for others: it may have got the wrong one.
func (t *Transfer) unmatched() string {
	if tags := t.comm.otherTags(t.peer); len(tags) > 0 {
		return fmt.Sprintf("%s (what waits has tag %s)", t.name(recvWay), ranges.Text(tags))
	}
	return t.name(recvWay)
}
