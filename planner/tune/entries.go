package tune

import (
	"slices"

	"github.com/tierflow/tierflow/planner/table"
)

// keepBest is how many of the fastest plans of each point a table keeps unless
// told otherwise. They are the runners-up, and interpolation needs them on both
// sides.
const keepBest = 3

// decide writes the entries of the requests from the measurements so far.
func (s *Search) decide() {
	points := make([][]table.Candidate, len(s.Requests))
	rejected := table.Counts{}
	for i := range s.Requests {
		points[i] = s.priceRequest(i)
		for reason, n := range Rejections(s.knowledge.candidates[i]) {
			rejected[reason] += n
		}
	}
	p := &s.Table.Provenance
	p.Rejected, p.Configurations, p.Planned = rejected, s.done, s.done+s.workLeft()
	for i, r := range s.Requests {
		if s.workLeft() > 0 && !s.knowsRule(i) {
			continue // cut short, and nobody knows whether other plans are better
		}
		keep := s.keptPlans(points, i)
		e := table.PointOf(r, s.Topology, s.Links)
		for _, c := range points[i] {
			if keep[c.Plan] {
				e.Candidates = append(e.Candidates, c)
			}
		}
		s.Table.Replace(e)
	}
	if far, ok := s.strategy.(farsighted); ok {
		for _, e := range far.entriesElsewhere() {
			if !s.Table.Measures(&e) {
				s.Table.Replace(e)
			}
		}
	}
	s.Table.Sort()
}

// tieRatio times the fastest plan's time, or less, counts as equal: the next measurement may
// reverse the order.
const tieRatio = 1.03

// priceRequest lists the configurations of request i with a known time, the fastest first. Once the best
// were measured beside each other, plans with only a faster prediction count as no faster than the best of
// them, and those hardly faster than the built-in rule's plan are left out: the table must not choose them.
func (s *Search) priceRequest(i int) []table.Candidate {
	all := estimates(s.knowledge, s.strategy, i)
	raced := func(c table.Candidate) bool { return s.knowledge.wasRaced(i, c.Parsed) }
	fastest := slices.IndexFunc(all, raced)
	if fastest < 0 {
		return all
	}
	rule := s.knowledge.rules[i]
	if k := slices.IndexFunc(all, func(c table.Candidate) bool { return raced(c) && c.Parsed.Equal(rule) }); k >= 0 && all[k].NS <= tieRatio*all[fastest].NS {
		fastest = k
	}
	best := all[fastest]
	some := []table.Candidate{best}
	for _, c := range all[:fastest] {
		if !raced(c) && c.From == table.FromPredicted {
			some = append(some, scaledTo(c, best.NS))
		}
	}
	return append(some, all[fastest+1:]...)
}

// scaledTo is a candidate with another time, and an interval around it in proportion.
func scaledTo(c table.Candidate, ns float64) table.Candidate {
	by := ns / c.NS
	c.NS, c.Low, c.High = ns, min(by*c.Low, ns), max(by*c.High, ns) // a product may be a rounding off
	return c
}

// knowsRule reports whether the time of the built-in rule's plan is known for request i, if it
// competes.
func (s *Search) knowsRule(i int) bool {
	rule := s.knowledge.rules[i]
	competes := slices.ContainsFunc(s.knowledge.candidates[i], func(c Configuration) bool { return c.Rejected == "" && c.Plan.Equal(rule) })
	_, known := s.strategy.estimate(i, rule)
	return known || !competes
}

// keptPlans returns the plans in the entry of request i: the fastest ones of any size of
// the collective, and the fastest one without regard to nodes.
func (s *Search) keptPlans(points [][]table.Candidate, i int) map[string]bool {
	keep := s.knowledge.wantedPlans(i)
	best := s.Keep
	if best == 0 {
		best = keepBest
	}
	for j, all := range points {
		if s.Requests[j].Coll != s.Requests[i].Coll {
			continue
		}
		flat := slices.IndexFunc(all, func(c table.Candidate) bool { return c.Parsed.Shape.IsFlat() })
		for at, c := range all {
			if at < best || at == flat {
				keep[table.Canonical(c.Parsed, s.Requests[i].Bytes()).String()] = true
			}
		}
	}
	return keep
}
