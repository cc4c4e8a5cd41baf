package executor

import (
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
