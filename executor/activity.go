package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Activity is a snapshot of one rank: its counts since the world was made, and its state now.
type Activity struct {
	// Computing: a caller's operation is on its way on the rank.
	Computing bool
	Calls     []Calls // by collective and plan, in the order of their first binding
	// Sent is the payload bytes sent by messages, by level.
	Sent []int64
	// Read is the bytes copied or reduced from other ranks' memory, by level.
	Read    []int64
	Running int           // calls and transfers on their way
	Waiting int           // of the calls, those standing still for 100 ms or more
	Longest time.Duration // the longest time a call has stood still; 0: none waits
	Stalls  int64         // stalls of calls: one after Config.StallAfter, the next after twice the time, and so on
	Broken  int           // failed communicators
	// Waited is about how long goroutines have waited for calls with nothing to do. Of short waits
	// one in 64 is measured, and counts for all. Time in calls of another library counts too, see [Elsewhere].
	Waited time.Duration
	Flows  []Flow `json:",omitempty"` // to the ranks on other nodes with a connection from here
}

// Flow is the state of the traffic to another rank.
type Flow struct {
	To int // of the world
	wire.Flow
}

// Activity returns a snapshot. level returns the level, below depth, at which this rank and another
// one of the world meet.
func (e *Endpoint) Activity(depth int, level func(peer levels.Rank) int) Activity {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := Activity{Sent: make([]int64, depth), Read: make([]int64, depth), Computing: e.operating > 0}
	a.Waited = e.waitTime + e.world.config.elsewhere().Waited
	for _, t := range e.tallies {
		a.Calls = append(a.Calls, t.Calls)
	}
	for peer, p := range e.peers.met() {
		if p.sent|p.read != 0 {
			k := level(peer)
			a.Sent[k] += p.sent
			a.Read[k] += p.read
		}
	}
	a.Running, a.Stalls = len(e.runs)+e.transfers, e.stalls
	if !e.stopped {
		a.Flows = e.flows()
	}
	for _, r := range e.runs {
		if !r.hasMoved && r.probed {
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

// flows asks the link about its traffic to other nodes. The lock is held.
func (t *traffic) flows() (all []Flow) {
	link, ok := t.link.(wire.Observer)
	if !ok {
		return nil
	}
	for peer := range t.peers.size {
		if f, known := link.Flow(levels.Rank(peer)); known {
			all = append(all, Flow{peer, f})
		}
	}
	return all
}
