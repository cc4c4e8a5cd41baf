package tune

import (
	"cmp"
	"math"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// offLine is how far off it shows that lines say nothing about a size.
const offLine = 0.3

// estimate returns what is known of a plan, or else puts it together from others.
func (p *probes) estimate(i int, q tasks.Plan) (table.Candidate, bool) {
	if c, ok := p.candidate(i, q); ok {
		return c, true
	}
	return p.compose(i, q)
}

// candidate returns what is known of a plan by measuring it, or by its pipeline or
// stages, or with sizes around.
func (p *probes) candidate(i int, q tasks.Plan) (c table.Candidate, ok bool) {
	if c, ok = p.measured(i, q); ok {
		return c, true
	}
	c.From = table.FromPredicted
	if q.Segment >= p.requests[i].Bytes() {
		return p.curve(i, c)
	}
	return p.predict(p.requests[i], c)
}

// compose puts the time of a plan for request i together from those of members.
func (p *probes) compose(i int, q tasks.Plan) (c table.Candidate, ok bool) {
	c = table.Candidate{Plan: q.String(), Parsed: q, From: table.FromPredicted}
	f := p.of[planKey(p.requests[i], q)]
	if f == nil || f.parts[c.Plan] == nil {
		return c, false
	}
	base, ok := p.candidate(i, f.base)
	if !ok {
		return c, false
	}
	c.NS = base.NS
	least := base.NS
	for _, part := range f.parts[c.Plan] {
		one, ok := p.candidate(i, part)
		if !ok {
			return c, false
		}
		c.NS += one.NS - base.NS
		least = min(least, one.NS)
	}
	c.NS = max(c.NS, least/2) // noise must not make it nothing
	return c, true
}

// far is the time from which on a plan for request i isn't worth looking around.
func (p *probes) far(i int) float64 {
	var times []float64
	for _, c := range p.candidates[i] {
		if one, ok := p.candidate(i, c.Plan); ok && c.Rejected == "" {
			times = append(times, one.NS)
		}
	}
	if len(times) == 0 {
		return math.Inf(1)
	}
	slices.Sort(times)
	limit := p.thrift.far * times[0]
	if p.few > 0 {
		limit = min(limit, times[min(p.few, len(times))-1])
	}
	return limit
}

// isFar reports whether it is known that a plan is far from the best.
func (p *probes) isFar(i int, q tasks.Plan) bool {
	c, ok := p.candidate(i, q)
	return ok && c.NS > p.limit[i]
}

// isRough reports whether what won at request i took another time than its line
// had said: then no line is believed there. Machines change protocols with the size.
func (p *probes) isRough(i int) bool {
	bytes := p.requests[i].Bytes()
	for _, c := range p.candidates[i] {
		if !p.raced(i, c.Plan) || c.Plan.Segment < bytes {
			continue
		}
		others := slices.DeleteFunc(p.points(p.requests[i], c.Plan), func(a point) bool { return a.bytes == bytes })
		at, _ := slices.BinarySearchFunc(others, bytes, func(a point, n int64) int { return cmp.Compare(a.bytes, n) })
		if at == 0 || at == len(others) {
			continue
		}
		if one, ok := p.candidate(i, c.Plan); ok && !agrees(one, line(others[at-1], others[at], bytes).NS, offLine) {
			return true
		}
	}
	return false
}
