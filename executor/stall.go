package executor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/trace"
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
			r.moved, r.probed, r.since, r.reported = false, false, now, e.world.config.StallAfter
			continue
		}
		if !r.probed {
			r.probed = true // once: a probe that comes early is kept
			r.probe()
		}
		if limit := r.reported; limit > 0 && now.Sub(r.since) >= limit {
			r.reported *= 2
			if log := e.world.config.Log; log != nil {
				log.Warn("stalled", "rank", r.comm.me, "request", r.b.Request, "waits", r.waits(), "for", now.Sub(r.since).Round(tick))
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
		for _, c := range e.comms {
			if (s.comm == nil || s.comm == c) && c.broken == nil && c.includes(s.rank) {
				c.blame(s.rank, s.err)
			}
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
	told := make(map[levels.Rank]bool)
	r.stuck(func(s *submodules.Step, peer levels.Rank) {
		if !told[peer] {
			told[peer] = true
			r.say(probeKind, s)
			r.comm.e.post(peer, nil)
		}
	})
}

// maxWaits bounds the steps that a stall report names.
const maxWaits = 8

// waits says what the run waits for: ib#3 recv r4>r5 64KiB, ….
func (r *Run) waits() string {
	var labels []string
	more := 0
	r.stuck(func(s *submodules.Step, _ levels.Rank) {
		if len(labels) < maxWaits {
			labels = append(labels, r.prog.Label(s))
		} else {
			more++
		}
	})
	text := strings.Join(labels, ", ")
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
	var all []string
	for _, r := range e.runs {
		all = append(all, fmt.Sprintf("rank %d, %s: %s", r.comm.me, r.b.Request, r.waits()))
	}
	for _, c := range e.comms {
		for _, t := range c.sends {
			all = append(all, fmt.Sprintf("rank %d, send %d bytes to rank %d, tag %d", c.me, len(t.buf), c.number(t.peer), t.tag))
		}
		for _, t := range c.recvs {
			all = append(all, fmt.Sprintf("rank %d, receive from rank %d, tag %d", c.me, c.number(t.peer), t.tag))
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
