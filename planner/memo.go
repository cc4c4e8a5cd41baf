package planner

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// memo keeps decisions, so that asking again for the same collective costs a look
// into a map. It may be used by several goroutines: the map is never written to, a
// new decision makes a new one. Looking needs no lock, then, and that is half of
// what it would cost.
type memo struct {
	last atomic.Pointer[remembered] // that was found: most programs ask for the same again
	all  atomic.Pointer[map[tasks.Request]*remembered]
	mu   sync.Mutex // held to put
}

type remembered struct {
	request  tasks.Request
	decision *choose.Decision
}

// maxMemo bounds the decisions that are kept: beyond it all are forgotten.
const maxMemo = 256

// put remembers a decision.
func (m *memo) put(r tasks.Request, d *choose.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[tasks.Request]*remembered{r: {r, d}}
	if old := m.all.Load(); old != nil && len(*old) < maxMemo {
		maps.Copy(next, *old)
	}
	m.all.Store(&next)
}

// find is the decision for r; nil if there is none.
func (m *memo) find(r tasks.Request) *choose.Decision {
	if last := m.last.Load(); last != nil && last.request == r {
		return last.decision
	}
	all := m.all.Load()
	if all == nil {
		return nil
	}
	found := (*all)[r]
	if found == nil {
		return nil
	}
	m.last.Store(found)
	return found.decision
}

// forget drops all decisions.
func (m *memo) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Store(nil)
	m.last.Store(nil)
}

// trials remembers what the ranks of a communicator have tried. All have tried the same.
type trials struct {
	mu    sync.Mutex
	known map[tasks.Request]*choose.Decision
}
