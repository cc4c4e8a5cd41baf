package tune

import (
	"cmp"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// onLine is how far from the line between its neighbours a time may be, as a part
// of it, whatever its interval.
const onLine = 0.1

// point is a candidate's time for messages of some bytes.
type point struct {
	bytes int64
	table.Candidate
}

// line is the time at some bytes on the straight line through two points.
func line(a, b point, bytes int64) (c table.Candidate) {
	part := float64(bytes-a.bytes) / float64(b.bytes-a.bytes)
	on := func(a, b float64) float64 { return float64((1-part)*a) + float64(part*b) }
	c.NS, c.Low, c.High = on(a.NS, b.NS), on(a.Low, b.Low), on(a.High, b.High)
	return c
}

// agrees reports whether a measured time is what a line says.
func agrees(c table.Candidate, ns, tolerance float64) bool {
	low, high := c.Interval()
	return math.Abs(ns-c.NS) <= tolerance*c.NS || low <= ns && ns <= high
}

// predict prices a plan that cuts by its pipeline or its stages.
func (p *probes) predict(r tasks.Request, c table.Candidate) (table.Candidate, bool) {
	at := pointKey(r, c.Parsed)
	if old, ok := p.priced[at]; ok {
		return old, true
	}
	key, flows := p.keys[planKey(r, c.Parsed)]
	run, ok := p.table.Book().Pipeline(key)
	if !ok && (flows || c.Parsed.Shape != tasks.HanLockstep) {
		return c, false
	}
	predicted, err := costs.Predict(r, p.topology, c.Parsed, p.table.Book())
	if err != nil || !(predicted.NS > 0) {
		return c, false
	}
	c.NS = predicted.NS
	if ok && run.Whole.Mean > 0 {
		part := min(run.Whole.Half/run.Whole.Mean, 1)
		c.Low, c.High = c.NS*(1-part), c.NS*(1+part)
		p.priced[at] = c
	}
	return c, true
}

// curve predicts a plan of one segment from what is known of other sizes: on the
// line between the next smaller and the next larger one, or through the last two.
func (p *probes) curve(i int, c table.Candidate) (table.Candidate, bool) {
	bytes := p.requests[i].Bytes()
	all := p.points(p.requests[i], c.Parsed)
	at, exact := slices.BinarySearchFunc(all, bytes, func(a point, n int64) int { return cmp.Compare(a.bytes, n) })
	var on table.Candidate
	switch {
	case exact:
		on = all[at].Candidate
	case at == 0 || len(all) < 2:
		return c, false
	default:
		at = min(at, len(all)-1)
		on = line(all[at-1], all[at], bytes)
	}
	c.NS, c.Low, c.High = on.NS, max(0, min(on.Low, on.NS)), max(on.High, on.NS) // beyond the last point they may cross
	return c, c.NS > 0
}

// points is what is known of a plan of one segment, by bytes.
func (p *probes) points(r tasks.Request, q tasks.Plan) (all []point) {
	for _, i := range p.where[planKey(r, q)] {
		if m, ok := p.known[pointKey(p.requests[i], q)]; ok {
			all = append(all, point{m.Bytes, table.Candidate{NS: m.NS, Low: m.Low, High: m.High}})
		}
	}
	for _, one := range p.alone[planKey(r, q)] {
		run, ok := p.table.Book().Pipeline(one.key)
		if !ok {
			continue
		}
		ns := 0.0
		for _, l := range run.Leaders {
			ns = max(ns, l.Alone)
		}
		all = append(all, point{one.bytes, table.Candidate{NS: ns, Low: ns, High: ns}})
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.bytes, b.bytes) })
	return slices.CompactFunc(all, func(a, b point) bool { return a.bytes == b.bytes })
}
