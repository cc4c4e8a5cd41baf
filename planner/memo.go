package planner

import (
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// memo keeps decisions, so that asking again for the same collective costs a look
// into a table. It may be used by several goroutines. Looking needs no lock, which would double its
// cost. Slots are filled once, one after the other, and a table is copied to a larger one when half
// of it is full.
type memo struct {
	last  atomic.Pointer[remembered] // that was found: most programs ask for the same again
	slots atomic.Pointer[[]atomic.Pointer[remembered]]
	mu    sync.Mutex // held to put
	n     int        // filled slots
}

type remembered struct {
	request  tasks.Request
	decision *choose.Decision
}

// Slots of a table, powers of two; at most half of them are filled. Beyond the largest table all
// decisions are forgotten.
const (
	firstSlots = 16
	mostSlots  = 512
)

// slot is where a request is looked for first in a table of 2ⁿ slots. Numbers that programs vary
// are mixed by a multiplication; requests that are alike in them follow each other.
func slot(r *tasks.Request, slots int) int {
	x := uint64(r.Count) ^ uint64(r.Coll)<<56 ^ uint64(r.Type)<<48 ^ uint64(uint32(r.Root))<<24 ^ uint64(r.Op.ID())<<40
	return int(x*0x9e3779b97f4a7c15>>32) & (slots - 1)
}

// put remembers a decision.
func (m *memo) put(r tasks.Request, d *choose.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.slots.Load()
	switch {
	case old == nil || m.n == mostSlots/2:
		m.n = 0
		m.slots.Store(newSlots(firstSlots))
		m.last.Store(nil)
	case m.n == len(*old)/2:
		next := newSlots(2 * len(*old))
		for i := range *old {
			if e := (*old)[i].Load(); e != nil {
				putIn(*next, e)
			}
		}
		m.slots.Store(next)
	}
	if putIn(*m.slots.Load(), &remembered{r, d}) {
		m.n++
	} else {
		m.last.Store(nil) // it may be what was replaced
	}
}

func newSlots(n int) *[]atomic.Pointer[remembered] {
	all := make([]atomic.Pointer[remembered], n)
	return &all
}

// putIn puts a decision into the first free slot, or in place of one for an equal request, and
// reports whether the slot was free.
func putIn(slots []atomic.Pointer[remembered], e *remembered) bool {
	i := slot(&e.request, len(slots))
	old := slots[i].Load()
	for old != nil && old.request != e.request {
		i = (i + 1) & (len(slots) - 1)
		old = slots[i].Load()
	}
	slots[i].Store(e)
	return old == nil
}

// find is the decision for r; nil if there is none.
func (m *memo) find(r tasks.Request) *choose.Decision {
	if last := m.last.Load(); last != nil && last.request == r {
		return last.decision
	}
	all := m.slots.Load()
	if all == nil {
		return nil
	}
	slots := *all
	for i := slot(&r, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		found := slots[i].Load()
		if found == nil {
			return nil
		}
		if found.request == r {
			m.last.Store(found)
			return found.decision
		}
	}
}

// forget drops all decisions.
func (m *memo) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n = 0
	m.slots.Store(nil)
	m.last.Store(nil)
}

// trials remembers what the ranks of a communicator have tried. All have tried the same.
type trials struct {
	mu    sync.Mutex
	known map[tasks.Request]*choose.Decision
}
