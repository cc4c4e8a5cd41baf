package executor

import (
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Activity is what one rank has done since its world was made, and what it does now.
type Activity struct {
	// Computing: the rank is inside a caller's operation, and nothing else is known.
	Computing bool
	Calls     []Calls // by collective and plan, in the order of their first binding
	// Sent is the payload bytes sent by messages, by level.
	Sent []int64
	// Read is the bytes copied or reduced from where other ranks keep them, by level.
	Read    []int64
	Running int           // calls and transfers that have begun and not ended
	Waiting int           // of the calls, those that have stood still for 100 ms or more
	Longest time.Duration // that a call has stood still; 0: none waits
	Stalls  int64         // times that a call stood still for Config.StallAfter, doubled each time
	Broken  int           // communicators that have failed
	// Waited is about how long goroutines that wait for calls have had nothing to do: of waits
	// that are short one in 64 is measured, and counts for all.
	Waited time.Duration
	Flows  []Flow `json:",omitempty"` // to ranks on other nodes to which there is a connection
}

// Flow is what leaves for another rank.
type Flow struct {
	To int // of the world
	wire.Flow
}

// Calls counts the calls of one collective with one plan.
type Calls struct {
	Collective, Plan string
	Count            int64 // that have begun
	// Took is how long calls took from their begin to their end on this rank, ns, and Rate their bus bandwidth, bytes per
	// second: as of links that carry what has to be carried once. Calls with
	// buffers of less than 256 KiB are a sample: each one counts for 32.
	Took, Rate Histogram
}

// Tally counts calls. The lock of the endpoint that made it guards it.
type Tally struct{ Calls }

// maxTallies bounds the plans that a rank tells apart.
const maxTallies = 256

// OtherPlans is the plan of [Calls] for which a rank has no room: it tells 256 apart.
const OtherPlans = "other"

// Tally returns the counter of a collective and a plan, for [Binding.Tally].
func (e *Endpoint) Tally(collective, plan string) *Tally {
	e.enter()
	defer e.mu.Unlock()
	find := func() *Tally {
		i := slices.IndexFunc(e.tallies, func(t *Tally) bool { return t.Collective == collective && t.Plan == plan })
		if i < 0 {
			return nil
		}
		return e.tallies[i]
	}
	t := find()
	if t == nil && len(e.tallies) >= maxTallies {
		plan = OtherPlans
		t = find()
	}
	if t == nil {
		t = &Tally{Calls{Collective: collective, Plan: plan}}
		e.tallies = append(e.tallies, t)
	}
	return t
}

// Activity returns a snapshot. level tells on which of so many levels this rank and
// another one of the world meet. A rank in a caller's operation is waited for for 250 ms.
func (e *Endpoint) Activity(depth int, level func(peer levels.Rank) int) Activity {
	a := Activity{Sent: make([]int64, depth), Read: make([]int64, depth)}
	if !e.lockWithin(lockTime) {
		return Activity{Computing: true}
	}
	defer e.mu.Unlock()
	for _, t := range e.tallies {
		a.Calls = append(a.Calls, t.Calls)
	}
	for peer := range e.peers {
		if p := &e.peers[peer]; p.sent|p.read != 0 {
			k := level(levels.Rank(peer))
			a.Sent[k] += p.sent
			a.Read[k] += p.read
		}
	}
	a.Running, a.Stalls, a.Waited = len(e.runs)+e.transfers, e.stalls, e.waited
	a.Flows = e.flows()
	for _, r := range e.runs {
		if !r.moved && r.probed {
			a.Waiting++
			a.Longest = max(a.Longest, time.Since(r.since))
		}
	}
	for _, c := range e.comms {
		if c.cause.err != nil {
			a.Broken++
		}
	}
	return a
}

// flows asks the link what leaves for others. The lock is held.
func (e *Endpoint) flows() (all []Flow) {
	link, ok := e.link.(wire.Observer)
	if !ok || e.stopped {
		return nil
	}
	for peer := range e.peers {
		if f, known := link.Flow(levels.Rank(peer)); known {
			all = append(all, Flow{peer, f})
		}
	}
	return all
}
