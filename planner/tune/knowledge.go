package tune

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// knowledge is the questions of a search, and its findings so far. Strategies read it.
type knowledge struct {
	topology *levels.Topology
	links    string // between nodes
	requests []tasks.Request
	space    Space
	stop     stats.Stop
	raceWhen RaceWhen
	table    *table.Table // it grows
	learn    learn.Options
	learning func(text string) // nil: nobody wants to hear

	sizes      table.Sizes
	candidates [][]Configuration            // by request
	rules      []tasks.Plan                 // by request, the built-in rule's
	needed     []map[string]bool            // by request, plans for lines to other entries, see [Space.guestPlans]
	where      map[string][]int             // requests with a plan, by planKey, the smallest first
	known      map[string]table.Measurement // of this machine, by pointKey
	refused    map[string]bool              // plans that can't be lowered, by pointKey
	tried      map[string]bool              // work, by key
}

// newKnowledge recalls the measurements in the search's table. [knowledge.listConfigurations] is next.
func newKnowledge(s *Search) *knowledge {
	k := &knowledge{
		topology: s.Topology, links: s.Links, requests: s.Requests, space: s.Space, stop: s.Stop, raceWhen: s.Races, table: s.Table,
		learn: s.Learn, learning: s.Learning,
		sizes: table.SizesOf(s.Topology), refused: map[string]bool{}, tried: map[string]bool{},
	}
	k.known = map[string]table.Measurement{}
	for _, r := range k.requests {
		recallMeasured(k.known, k.table, r.Coll, k.sizes, k.placeOf(r))
	}
	return k
}

func planKey(r tasks.Request, p tasks.Plan) string { return r.Coll.String() + " " + p.String() }

func pointKey(r tasks.Request, p tasks.Plan) string {
	return pointText(r.Coll.String(), r.MeanBytes(), r.Uneven(), p.String())
}

func pointText(coll string, bytes int64, uneven int, plan string) string {
	return fmt.Sprintf("%s %d %d %s", coll, bytes, uneven, plan)
}

// recallMeasured adds a table's measurements of a collective on a machine at a place to known, by
// pointKey.
func recallMeasured(known map[string]table.Measurement, t *table.Table, coll tasks.Collective, sizes table.Sizes, at table.Place) {
	for _, m := range t.Measured {
		if m.Collective == coll.String() && m.Levels.Compare(sizes) == 0 && m.Place == at {
			known[pointText(m.Collective, m.Bytes, m.Uneven, m.Plan)] = m
		}
	}
}

// placeOf returns the place of a request's times.
func (k *knowledge) placeOf(r tasks.Request) table.Place {
	return table.PlaceOf(r, k.topology, k.links)
}

// wantedPlans lists plans that need a time in the table for request i even if others are
// faster: between machines and sizes times of a plan are interpolated, so both ends must have it.
func (k *knowledge) wantedPlans(i int) map[string]bool {
	all := maps.Clone(k.needed[i])
	r := k.requests[i]
	for _, e := range k.table.Entries {
		if e.Collective == r.Coll.String() && e.Bytes == r.MeanBytes() && e.Uneven == r.Uneven() && e.Levels.Compare(k.sizes) != 0 {
			for _, c := range e.Candidates {
				all[c.Plan] = true
			}
		}
	}
	return all
}

// listConfigurations lists the configurations of all requests. It asks before each whether it goes on.
func (k *knowledge) listConfigurations(goesOn func() error) error {
	k.candidates, k.where = make([][]Configuration, len(k.requests)), map[string][]int{}
	k.needed, k.rules = make([]map[string]bool, len(k.requests)), make([]tasks.Plan, len(k.requests))
	by := newTemplates(k.space, k.topology)
	for i, r := range k.requests {
		if err := goesOn(); err != nil {
			return err
		}
		k.candidates[i] = k.space.configurations(r, by)
		k.rules[i] = k.space.Rule(r, k.topology)
		k.needed[i] = map[string]bool{k.rules[i].String(): true}
		for _, p := range k.space.guestPlans(r, k.requests, k.topology) {
			k.candidates[i] = k.space.withRival(k.candidates[i], r, k.topology, p)
			k.needed[i][p.String()] = true
		}
		for _, c := range k.candidates[i] {
			if c.Rejected == "" {
				key := planKey(r, c.Plan)
				k.where[key] = append(k.where[key], i)
			}
		}
	}
	for _, all := range k.where {
		slices.SortFunc(all, func(i, j int) int { return cmp.Compare(k.requests[i].Count, k.requests[j].Count) })
	}
	return nil
}

// noteMeasured keeps a measurement, in place of an older one of the same.
func (k *knowledge) noteMeasured(r tasks.Request, p tasks.Plan, series []float64, turns int, spent float64) {
	one := NewMeasurement(r, k.topology, p, measure.Timing{Series: series})
	one.Turns, one.Place, one.Spent = turns, k.placeOf(r), spent
	k.table.Measured = append(k.table.Measured, one)
	k.known[pointKey(r, p)] = one
}

// measuredTime returns the measured time of a plan with request i.
func (k *knowledge) measuredTime(i int, p tasks.Plan) (c table.Candidate, ok bool) {
	c = table.Candidate{Plan: p.String(), Parsed: p, From: k.table.Origin()}
	m, ok := k.known[pointKey(k.requests[i], p)]
	c.NS, c.Low, c.High = m.NS, m.Low, m.High
	return c, ok
}

// wasRaced reports whether a plan was measured in turns with others.
func (k *knowledge) wasRaced(i int, q tasks.Plan) bool {
	return k.known[pointKey(k.requests[i], q)].Turns > 0
}
