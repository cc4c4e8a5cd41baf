package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Considered is the knowledge about one plan for a request.
type Considered struct {
	Plan      string  `json:"plan"`
	Chosen    bool    `json:"chosen,omitempty"`
	NS        float64 `json:"ns,omitempty"`        // for comparisons; 0: unknown
	From      string  `json:"from,omitempty"`      // NS: measured, predicted, interpolated or extrapolated
	Predicted float64 `json:"predicted,omitempty"` // ns, from the table's costs of tasks; 0: they don't tell
	Measured  float64 `json:"measured,omitempty"`  // ns, of exactly this request; 0: not measured
	Rejected  string  `json:"rejected,omitempty"`  // why it is not searched
}

// Explanation is all there is to say about a decision.
type Explanation struct {
	Request    string       `json:"request"`
	Topology   string       `json:"topology"`
	Plan       string       `json:"plan"`
	Text       string       `json:"-"` // as [planner.Explain]
	Table      string       `json:"table,omitempty"`
	Fallback   string       `json:"fallback,omitempty"` // why the table did not decide
	Rejected   table.Counts `json:"rejected,omitempty"`
	Candidates []Considered `json:"candidates"`
}

// Consider is [planner.Explain] with every plan of a space: the chosen one if there is a time
// for it, the others by their times, then those without any knowledge, then
// the rejected ones. Some may have a better time than the chosen one: it
// was measured beside its rivals, they were not.
func Consider(r tasks.Request, t *levels.Topology, o *planner.Options, s Space) (*Explanation, error) {
	d, err := raw.Inspect(r, t, o)
	if err != nil {
		return nil, err
	}
	s.Registry, s.Plan = d.Registry, d.Forced
	configurations := s.Configurations(r, t)
	return &Explanation{
		Request: r.String(), Topology: t.String(), Plan: d.Plan.String(), Text: d.Text,
		Table: d.Origin, Fallback: d.Fallback,
		Rejected: Rejections(configurations), Candidates: consider(r, t, d, configurations),
	}, nil
}

func consider(r tasks.Request, t *levels.Topology, d *raw.Decision, configurations []Configuration) []Considered {
	known := map[string]table.Estimate{}
	for _, e := range d.Answer.Estimates {
		known[table.Canonical(e.Plan, r.Bytes()).String()] = e
	}
	measured := map[string]table.Measurement{}
	if d.Table != nil {
		recallMeasured(measured, d.Table, r.Coll, table.SizesOf(t), table.PlaceOf(r, t, d.Links))
	}
	chosen := table.Canonical(d.Plan, r.Bytes()).String()
	found := false
	all := make([]Considered, 0, len(configurations)+1)
	one := func(p tasks.Plan, rejected string) Considered {
		c := Considered{Plan: p.String(), Chosen: p.String() == chosen, Rejected: rejected}
		if m, ok := measured[pointKey(r, p)]; ok {
			c.Measured = m.NS
		}
		if d.Table != nil && d.Table.Costs != nil && rejected == "" {
			if predicted, err := costs.Predict(r, t, p, d.Table.Costs); err == nil {
				c.Predicted = predicted.NS
			}
		}
		switch e, ok := known[c.Plan]; {
		case ok:
			c.NS, c.From = e.NS, e.From
		case c.Measured > 0:
			c.NS, c.From = c.Measured, d.Table.Origin()
		case c.Predicted > 0:
			c.NS, c.From = c.Predicted, table.FromPredicted
		}
		delete(known, c.Plan)
		found = found || c.Chosen
		return c
	}
	for _, c := range configurations {
		all = append(all, one(c.Plan, c.Rejected))
	}
	for _, text := range slices.Sorted(maps.Keys(known)) { // of another space, that of the search
		all = append(all, one(known[text].Plan, ""))
	}
	if !found {
		all = append(all, one(table.Canonical(d.Plan, r.Bytes()), ""))
	}
	slices.SortStableFunc(all, func(a, b Considered) int { return cmp.Compare(a.rank(), b.rank()) })
	return all
}

func (c Considered) rank() float64 {
	switch {
	case c.Rejected != "":
		return math.Inf(1)
	case c.Chosen && c.NS > 0:
		return 0
	case c.NS == 0:
		return math.MaxFloat64
	}
	return c.NS
}

// String is the explanation as a text, a line for each plan.
func (e *Explanation) String() string {
	var b strings.Builder
	b.WriteString(e.Text)
	fmt.Fprintf(&b, "  candidates: %d", len(e.Candidates))
	if len(e.Rejected) > 0 {
		fmt.Fprintf(&b, " (%s)", RejectionText(e.Rejected))
	}
	b.WriteString("\n    µs, origin          predicted   measured  plan\n")
	for _, c := range e.Candidates {
		mark := " "
		if c.Chosen {
			mark = "*"
		}
		if c.Rejected != "" {
			fmt.Fprintf(&b, "  %s %-43s %s: %s\n", mark, "rejected", c.Plan, c.Rejected)
			continue
		}
		fmt.Fprintf(&b, "  %s %10s %-13s %9s  %9s  %s\n", mark, micros(c.NS), c.From, micros(c.Predicted), micros(c.Measured), c.Plan)
	}
	return b.String()
}

func micros(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", ns/1e3)
}
