package tune

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// keepBest is how many of the fastest plans of each point a table keeps unless
// told otherwise. They are the runners-up, and what interpolation needs on both
// sides.
const keepBest = 3

// decide writes the entries of the requests from what has been measured so far.
func (s *Search) decide() {
	points := make([][]table.Candidate, len(s.Requests))
	rejected := table.Counts{}
	for i := range s.Requests {
		points[i] = s.price(i)
		for reason, n := range Rejections(s.candidates[i]) {
			rejected[reason] += n
		}
	}
	p := &s.Table.Provenance
	p.Rejected, p.Configurations, p.Planned = rejected, s.done, s.done+s.left()
	for i, r := range s.Requests {
		keep := s.kept(points, i)
		e := table.Entry{Collective: r.Coll.String(), Levels: s.sizes, Bytes: r.Bytes()}
		for _, c := range points[i] {
			if keep[c.Plan] {
				e.Candidates = append(e.Candidates, c)
			}
		}
		s.Table.Replace(e)
	}
	s.Table.Sort()
}

// hardly is how many times as long takes what the next measurement may find faster.
const hardly = 1.03

// price is what each configuration of request i takes, as far as that is known,
// the fastest first. Once the best were measured beside each other, those that
// were only thought to be faster are left out, and those that were hardly faster than
// the built-in rule's plan: the table must not choose them.
func (s *Search) price(i int) []table.Candidate {
	all := s.estimates(i)
	raced := func(c table.Candidate) bool { return s.raced(i, c.Parsed) }
	fastest := slices.IndexFunc(all, raced)
	if fastest < 0 {
		return all
	}
	rule := s.Space.Rule(s.Requests[i], s.Topology)
	if k := slices.IndexFunc(all, func(c table.Candidate) bool { return raced(c) && c.Parsed.Equal(rule) }); k >= 0 && all[k].NS <= hardly*all[fastest].NS {
		fastest = k
	}
	return all[fastest:]
}

// estimates is what each configuration of request i takes, or is thought to, the
// fastest first.
func (s *Search) estimates(i int) (all []table.Candidate) {
	for _, c := range s.candidates[i] {
		if c.Rejected != "" || s.refused[pointKey(s.Requests[i], c.Plan)] {
			continue
		}
		one, ok := s.candidate(i, c.Plan)
		if !ok && s.probes != nil {
			one, ok = s.probes.compose(i, c.Plan)
		}
		if ok {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b table.Candidate) int { return cmp.Compare(a.NS, b.NS) })
	return all
}

// candidate is what is known of a plan by measuring it, or by its pipeline or
// stages, or with sizes around.
func (s *Search) candidate(i int, p tasks.Plan) (c table.Candidate, ok bool) {
	r := s.Requests[i]
	c = table.Candidate{Plan: p.String(), Parsed: p, From: table.FromMeasured}
	if m, ok := s.known[pointKey(r, p)]; ok {
		c.NS, c.Low, c.High = m.NS, m.Low, m.High
		return c, true
	}
	if s.probes == nil {
		return c, false
	}
	c.From = table.FromPredicted
	if p.Segment >= r.Bytes() {
		return s.probes.curve(i, c)
	}
	return s.probes.predict(r, c)
}

// kept lists the plans that the entry of request i holds: those that are among the
// fastest of any size of the collective, and the fastest that ignores nodes.
func (s *Search) kept(points [][]table.Candidate, i int) map[string]bool {
	keep := map[string]bool{}
	best := s.Keep
	if best == 0 {
		best = keepBest
	}
	for j, all := range points {
		if s.Requests[j].Coll != s.Requests[i].Coll {
			continue
		}
		flat := slices.IndexFunc(all, func(c table.Candidate) bool { return c.Parsed.Shape == tasks.Flat })
		for at, c := range all {
			if at < best || at == flat {
				keep[table.Canonical(c.Parsed, s.Requests[i].Bytes()).String()] = true
			}
		}
	}
	return keep
}
