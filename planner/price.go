package planner

import (
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
)

// keepBest is how many of the fastest plans of each point a table keeps unless
// told otherwise. They are the runners-up, and what interpolation needs on both
// sides.
const keepBest = 3

// decide writes the entries of the requests from what has been measured so far.
func (s *Search) decide() {
	points := make([][]Candidate, len(s.Requests))
	rejected := Counts{}
	for i := range s.Requests {
		points[i] = s.price(i)
		for reason, n := range Rejections(s.candidates[i]) {
			rejected[reason] += n
		}
	}
	p := &s.Table.Provenance
	p.Rejected, p.Configurations, p.Planned = rejected, s.done, len(s.job)
	for i, r := range s.Requests {
		keep := s.kept(points, i)
		e := Entry{Collective: r.Coll.String(), Levels: s.sizes, Bytes: r.Bytes()}
		for _, c := range points[i] {
			if keep[c.Plan] {
				e.Candidates = append(e.Candidates, c)
			}
		}
		s.Table.replace(e)
	}
	s.Table.Sort()
}

// price is what each configuration of request i takes, as far as that is known,
// the fastest first.
func (s *Search) price(i int) (all []Candidate) {
	for _, c := range s.candidates[i] {
		if c.Rejected != "" {
			continue
		}
		if one, ok := s.candidate(i, c.Plan); ok {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Candidate) int { return compare(a.NS, b.NS) })
	return all
}

func (s *Search) candidate(i int, p tasks.Plan) (c Candidate, ok bool) {
	r := s.Requests[i]
	c = Candidate{Plan: p.String(), plan: p, From: FromMeasured}
	if m, ok := s.known[pointKey(r, p)]; ok {
		c.NS, c.Low, c.High = m.NS, m.Low, m.High
		return c, true
	}
	if !s.Method.tasks() {
		return c, false
	}
	c.From = FromPredicted
	if p.Segment >= r.Bytes() {
		return s.whole(i, c)
	}
	predicted, err := costs.Predict(r, s.Topology, p, s.Table.book())
	if err != nil || !(predicted.NS > 0) {
		return c, false
	}
	c.NS = predicted.NS
	if key, err := costs.PipelineKey(r, s.Topology, p); err == nil {
		if run, ok := s.Table.book().Pipeline(key); ok && run.Whole.Mean > 0 {
			part := min(run.Whole.Half/run.Whole.Mean, 1)
			c.Low, c.High = c.NS*(1-part), c.NS*(1+part)
		}
	}
	return c, true
}

// whole predicts a plan of one segment from the sizes it was measured with: on the
// line between the next smaller and the next larger one.
func (s *Search) whole(i int, c Candidate) (Candidate, bool) {
	bytes := s.Requests[i].Bytes()
	var low, high *Measurement
	for _, j := range s.where[planKey(s.Requests[i], c.plan)] {
		m, ok := s.known[pointKey(s.Requests[j], c.plan)]
		switch {
		case ok && m.Bytes < bytes:
			low = &m
		case ok && high == nil:
			high = &m
		}
	}
	if low == nil || high == nil {
		return c, false
	}
	part := float64(bytes-low.Bytes) / float64(high.Bytes-low.Bytes)
	on := func(a, b float64) float64 { return float64((1-part)*a) + float64(part*b) }
	c.NS, c.Low, c.High = on(low.NS, high.NS), on(low.Low, high.Low), on(low.High, high.High)
	return c, true
}

// kept lists the plans that the entry of request i holds: those that are among the
// fastest of any size of the collective, and the fastest that ignores nodes.
func (s *Search) kept(points [][]Candidate, i int) map[string]bool {
	keep := map[string]bool{}
	best := s.Keep
	if best == 0 {
		best = keepBest
	}
	for j, all := range points {
		if s.Requests[j].Coll != s.Requests[i].Coll {
			continue
		}
		flat := slices.IndexFunc(all, func(c Candidate) bool { return c.plan.Shape == tasks.Flat })
		for at, c := range all {
			if at < best || at == flat {
				keep[canonical(c.plan, s.Requests[i].Bytes()).String()] = true
			}
		}
	}
	return keep
}

// replace puts an entry in place of the one for the same point. An entry without
// candidates would say nothing.
func (t *Table) replace(e Entry) {
	t.Entries = slices.DeleteFunc(t.Entries, func(old Entry) bool { return old.key() == e.key() })
	if len(e.Candidates) > 0 {
		t.Entries = append(t.Entries, e)
	}
}

// book is the table's costs of tasks.
func (t *Table) book() *costs.Book {
	if t.Costs == nil {
		t.Costs = &costs.Book{}
	}
	return t.Costs
}
