package planner

import (
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// memo keeps decisions: asking again for the same collective costs a look
// into a table. It may be used by several goroutines. Looking takes no lock: one would double the
// cost. Slots are filled once, one after the other, and a table is copied to a larger one when half
// of it is full.
type memo struct {
	last  atomic.Pointer[memoEntry] // the last one found: most programs ask for the same again
	slots atomic.Pointer[[]atomic.Pointer[memoEntry]]
	mu    sync.Mutex // held to put
	n     int        // filled slots
}

type memoEntry struct {
	request  tasks.Request
	decision *choose.Decision
}

// Slots of a table, powers of two; at most half of them are filled. Beyond the largest table all
// decisions are forgotten.
const (
	firstSlots = 16
	mostSlots  = 512
)

// slot is the first slot to look for a request, in a table of 2ⁿ slots. A multiplication mixes the
// numbers that programs vary. Requests alike in these follow each other.
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
	if putIn(*m.slots.Load(), &memoEntry{r, d}) {
		m.n++
	} else {
		m.last.Store(nil) // it may be the replaced one
	}
}

func newSlots(n int) *[]atomic.Pointer[memoEntry] {
	all := make([]atomic.Pointer[memoEntry], n)
	return &all
}

// putIn puts a decision into the first free slot, or in place of one for an equal request, and
// reports whether the slot was free.
func putIn(slots []atomic.Pointer[memoEntry], e *memoEntry) bool {
	i := slot(&e.request, len(slots))
	old := slots[i].Load()
	for old != nil && old.request != e.request {
		i = (i + 1) & (len(slots) - 1)
		old = slots[i].Load()
	}
	slots[i].Store(e)
	return old == nil
}

// find returns the decision for r, which it only reads; nil if there is none.
func (m *memo) find(r *tasks.Request) *choose.Decision {
	if last := m.last.Load(); last != nil && last.request == *r {
		return last.decision
	}
	all := m.slots.Load()
	if all == nil {
		return nil
	}
	slots := *all
	for i := slot(r, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		found := slots[i].Load()
		if found == nil {
			return nil
		}
		if found.request == *r {
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

// decisions chooses plans for a communicator, and remembers them.
type decisions struct {
	policy
	memo   *memo
	trials trials
}

// decide returns the decision of policy.choose for a request on a base, from the memo if it is there.
func (d *decisions) decide(r *tasks.Request, b *base) (*choose.Decision, error) {
	if known := d.memo.find(r); known != nil {
		return known, nil
	}
	made, err := d.choose(*r, b.topology, b.registry)
	if err != nil {
		return nil, err
	}
	return d.trials.settle(*r, &made, d.memo), nil
}

// trials remembers the decisions of a communicator's trials, equal on all ranks.
type trials struct {
	mu    sync.Mutex
	known map[tasks.Request]*choose.Decision // by what is equal on all ranks
}

// keep remembers a trial's decision. Whatever the memo has of the request, in place or not, was decided
// without the trial, and is forgotten. t.mu is held.
func (t *trials) keep(r tasks.Request, d *choose.Decision, m *memo) {
	if t.known == nil {
		t.known = map[tasks.Request]*choose.Decision{}
	}
	t.known[r.Shared()] = d
	m.forget()
}

// settle puts the decision for a request into the memo, and returns it: that of a trial if there was
// one, else the one made without. So it makes no difference what a rank's memo has seen and forgotten.
func (t *trials) settle(r tasks.Request, made *choose.Decision, m *memo) *choose.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tried := t.known[r.Shared()]; tried != nil {
		made = tried
	}
	m.put(r, made)
	return made
}
