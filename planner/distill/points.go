package distill

import (
	"maps"
	"math"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// feature is a question of trees.
type feature uint8

const (
	nodes feature = iota
	perNode
	bytes
	ordered
	processes
	features
)

// point is an entry of a table.
type point struct {
	is    [features]int64
	entry *table.Entry
	best  float64   // ns of its fastest plan
	cost  []float64 // by plan: its time by best
	known []bool    // by plan: the cost is known
}

// unknownCost is the slowdown counted for a plan of unknown time.
const unknownCost = 2

// pointsOf returns the entries of a collective, of blocks that differ or of equal ones, with layouts for
// rules. left counts those of the same kind with other layouts.
func pointsOf(t *table.Table, coll string, differ bool) (all []*point, left int) {
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Collective != coll || len(e.Candidates) == 0 || (e.Uneven > 0) != differ {
			continue
		}
		if e.Layout != table.Block && e.Layout != table.Dealt || e.Op == table.User {
			left++
			continue
		}
		p := &point{entry: e, best: math.Inf(1), is: [features]int64{bytes: e.Bytes}}
		across, inside := e.Levels.Machine()
		p.is[nodes], p.is[perNode] = int64(across), int64(inside)
		if e.Layout == table.Block {
			p.is[ordered] = 1
		}
		if e.Ranks == table.Processes {
			p.is[processes] = 1
		}
		for _, c := range e.Candidates {
			p.best = min(p.best, c.NS)
		}
		all = append(all, p)
	}
	return all, left
}

// plansOf lists the plans of points, sorted by their text, and notes their costs at each point.
func plansOf(all []*point) []string {
	parsed := map[string]tasks.Plan{}
	for _, p := range all {
		for _, c := range p.entry.Candidates {
			parsed[c.Plan] = c.Parsed
		}
	}
	texts := slices.Sorted(maps.Keys(parsed))
	for _, p := range all {
		p.cost, p.known = make([]float64, len(texts)), make([]bool, len(texts))
		for i, text := range texts {
			p.cost[i] = unknownCost
			if ns, known := p.time(parsed[text], all); known {
				p.cost[i], p.known[i] = ns/p.best, true
			}
		}
	}
	return texts
}

// time returns a plan's time: as it was measured, or between the next measured sizes.
func (p *point) time(plan tasks.Plan, all []*point) (ns float64, known bool) {
	if ns, known = p.measuredTime(plan, p.entry.Largest()); known {
		return ns, true
	}
	var below, above *point
	var from, to float64
	for _, o := range all {
		if !o.isMachineOf(p) {
			continue
		}
		ns, known := o.measuredTime(plan, o.entry.Largest())
		switch b := o.is[bytes]; {
		case !known || b == p.is[bytes]:
		case b < p.is[bytes] && (below == nil || b > below.is[bytes]):
			below, from = o, ns
		case b > p.is[bytes] && (above == nil || b < above.is[bytes]):
			above, to = o, ns
		}
	}
	if below == nil || above == nil || below.is[bytes] == 0 {
		return 0, false
	}
	return max(p.best, from*math.Pow(to/from, shareBetween(below.is[bytes], p.is[bytes], above.is[bytes]))), true
}

// shareBetween returns the place of a size between two others by logarithms: 0 at the lower one, 1 at
// the upper one.
func shareBetween(low, at, high int64) float64 {
	logs := func(b int64) float64 { return math.Log(float64(b)) }
	return (logs(at) - logs(low)) / (logs(high) - logs(low))
}

// isMachineOf reports whether both points are of one machine.
func (p *point) isMachineOf(o *point) bool {
	return o.entry.Place == p.entry.Place && o.is[nodes] == p.is[nodes] && o.is[perNode] == p.is[perNode]
}

// measuredTime returns the time of a candidate equal to the plan.
func (p *point) measuredTime(plan tasks.Plan, size int64) (ns float64, known bool) {
	like := table.Canonical(plan, size)
	for _, c := range p.entry.Candidates {
		if table.Canonical(c.Parsed, size).Equal(like) {
			return c.NS, true
		}
	}
	return 0, false
}
