package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// lookAround is done every tick by a rank that waits: it tells those it waits
// for at which request it is, so that ranks which disagree find out, and reports
// a run that stands still.
func (e *Endpoint) lookAround() {
	now := time.Now()
	e.judge(now)
	for _, r := range e.runs {
		if r.moved || r.since.IsZero() {
			if r.probed {
				e.flight.Move(uint64(r.comm.id), r.seq)
			}
			r.moved, r.probed, r.asked, r.since, r.reported = false, false, 0, now, e.world.config.StallAfter
			continue
		}
		r.comm.deserted(r, now)
		if still := now.Sub(r.since); r.probed && still >= 2*r.asked {
			r.asked = still // again when it has waited twice as long
			r.inquire()
		}
		if !r.probed {
			r.probed = true // once: a probe that comes early is kept
			r.probe()
			r.noteWait(now.Sub(r.since))
		}
		if limit := r.reported; limit > 0 && now.Sub(r.since) >= limit {
			r.reported *= 2
			if log := e.world.config.Stalls; log != nil {
				log.Warn("stalled", "rank", r.comm.me, "request", r.b.Request, "waits", r.waits(), "for", now.Sub(r.since).Round(wire.Tick), "missing", r.absent())
			}
		}
	}
}

// grace is how long the control plane has to explain what made a rank suspect.
const grace = time.Second

// judge breaks the communicators of a rank that is suspect without a reason that
// the control plane knows.
func (e *Endpoint) judge(now time.Time) {
	for len(e.suspects) > 0 && now.Sub(e.suspects[0].since) >= grace {
		s := e.suspects[0]
		e.suspects = e.suspects[1:]
		e.accuse(s.comm, s.rank, s.err)
		if s.comm == nil { // its link is told of once
			e.lose(s.rank, s.err)
		}
	}
}

// stuck calls f for each step of the running pass that waits for its peer.
func (r *Run) stuck(f func(s *submodules.Step, peer levels.Rank)) {
	for i := range r.steps {
		s := &r.steps[i]
		if s.Peer >= 0 && r.flags[i]&(reached|ended) == reached {
			f(s, r.peer(s))
		}
	}
}

// probe tells each rank that is waited for where this one is.
func (r *Run) probe() {
	clear(r.told)
	r.stuck(func(_ *submodules.Step, peer levels.Rank) {
		if n := r.comm.local[peer]; !r.told.has(n) {
			r.told.set(n)
			r.comm.present(peer, r.seq, r.digest)
		}
	})
}

// maxWaits bounds the steps that a stall report names.
const maxWaits = 8

// waits says what the run waits for, from ranks that have not come first: ib#3
// recv r4>r5 64KiB, ….
func (r *Run) waits() string {
	var labels, others []string
	r.stuck(func(s *submodules.Step, peer levels.Rank) {
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
	return e.waiting()
}

func (e *Endpoint) waiting() []string {
	var all []string
	for _, r := range e.runs {
		all = append(all, fmt.Sprintf("rank %d, %s: %s", r.comm.me, r.b.Request, r.waitsFor()))
	}
	for _, c := range e.comms {
		for _, t := range c.sends {
			all = append(all, fmt.Sprintf("rank %d, send %d bytes to rank %d, tag %d", c.me, len(t.buf), c.number(t.peer), t.tag))
		}
		receives := func(t *Transfer) {
			all = append(all, fmt.Sprintf("rank %d, receive from rank %d, tag %d", c.me, c.number(t.peer), t.tag))
		}
		for t := range c.recvs.all() {
			receives(*t)
		}
		for _, t := range c.given {
			receives(t)
		}
	}
	slices.Sort(all)
	return all
}

// now is nanoseconds on the clock of traces.
func (e *Endpoint) now() int64 { return int64(time.Since(e.world.config.Hooks.Epoch)) }

// trace tells the hook that a step has ended.
func (r *Run) trace(id dag.ID) {
	r.comm.e.world.config.Hooks.Step(trace.Event{
		Source: r.prog, Rank: r.comm.me, Run: r.seq, Pass: r.pass, Step: int32(id),
		Begin: r.begun[id], End: r.comm.e.now(),
	})
}
