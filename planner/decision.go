package planner

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules"
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
	decision *decision
}

// maxMemo bounds the decisions that are kept: beyond it all are forgotten.
const maxMemo = 256

// put remembers a decision.
func (m *memo) put(r tasks.Request, d *decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[tasks.Request]*remembered{r: {r, d}}
	if old := m.all.Load(); old != nil && len(*old) < maxMemo {
		maps.Copy(next, *old)
	}
	m.all.Store(&next)
}

// find is the decision for r; nil if there is none.
func (m *memo) find(r tasks.Request) *decision {
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

// advice is what a decision table said of a request.
type advice struct {
	answer
	origin string   // where the table is from
	chosen int      // index into estimates; -1: none
	unfit  []string // why faster ones were not taken
}

// consult lets a table decide: its fastest plan that the request and topology
// allow, where nothing is forced. The built-in rule fills in levels that the
// table's machines don't have.
func (d *decision) consult(t *loadedTable, r tasks.Request, on *levels.Topology, reg submodules.Registry) {
	a := &advice{answer: t.find(r, on), origin: t.origin, chosen: -1}
	d.advice = a
	for i, e := range a.estimates {
		p := d.forced.Over(e.plan)
		_, err := rule.Fits(r, on, p, reg)
		if err != nil {
			base, _ := rule.Choose(r, on, p)
			p = p.Over(base)
			_, err = rule.Fits(r, on, p, reg)
		}
		if err == nil {
			d.plan, d.why, a.chosen = p, nil, i
			return
		}
		a.unfit = append(a.unfit, fmt.Sprintf("%v: %v", e.plan, err))
	}
	if a.why == "" {
		a.why = "none of its plans fits the request"
	}
}

// maxRunnersUp bounds the plans that Explain lists beside the chosen one.
const maxRunnersUp = 3

// explain adds what a table said, and on what grounds.
func (a *advice) explain(b *strings.Builder) {
	if a == nil {
		fmt.Fprintf(b, "  predicted: nothing, there is no decision table\n")
		return
	}
	if a.chosen < 0 {
		fmt.Fprintf(b, "  table: %s, but the built-in rule decides: %s\n", a.origin, a.why)
		fmt.Fprintf(b, "  predicted: nothing\n")
		return
	}
	fmt.Fprintf(b, "  table: %s\n", a.origin)
	for _, n := range a.neighbours {
		fmt.Fprintf(b, "  entry: %s of %s on %v, weight %.2f\n", n.entry.Collective, tasks.FormatBytes(n.entry.Bytes), n.entry.Levels, n.weight)
	}
	best := a.estimates[a.chosen]
	fmt.Fprintf(b, "  predicted: %.1f µs, %s\n", best.ns/1e3, best.from)
	for _, why := range a.unfit {
		fmt.Fprintf(b, "  faster but unfit: %s\n", why)
	}
	for i, e := range a.estimates[a.chosen+1:] {
		if i == maxRunnersUp {
			break
		}
		fmt.Fprintf(b, "  runner-up: %v: %.1f µs, %s\n", e.plan, e.ns/1e3, e.from)
	}
}
