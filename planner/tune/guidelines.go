package tune

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Violation is a guideline broken by an entry of a table: a sign of a measurement on
// a disturbed machine, or of a wrong prediction.
type Violation struct {
	Guideline  string      `json:"guideline"`
	Collective string      `json:"collective"`
	Levels     table.Sizes `json:"levels"`
	Bytes      int64       `json:"bytes"`
	Text       string      `json:"text"`
	entries    []*table.Entry
}

// String names the point and the mistake there.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s of %s on %v: %s", v.Guideline, v.Collective, tasks.FormatBytes(v.Bytes), v.Levels, v.Text)
}

// specializations are collectives that must not take longer than others with the
// same work one after the other (Träff, Gropp, Thakur: self-consistent MPI
// performance guidelines).
var specializations = []struct {
	special tasks.Collective
	general []tasks.Collective
}{
	{tasks.Allreduce, []tasks.Collective{tasks.Reduce, tasks.Bcast}},
	{tasks.Reduce, []tasks.Collective{tasks.Allreduce}},
	{tasks.Gather, []tasks.Collective{tasks.Allgather}},
}

// muchFaster times the time of a smaller message is the least for a larger one:
// protocols change with the size, and may gain a little.
const muchFaster = 0.8

// Violations checks a table against guidelines for any machine. A collective is
// not slower than others with the same effect. More bytes are not much faster. The choice
// does not lose to flat. A difference within the intervals of measurements is no
// violation.
func Violations(t *table.Table) (all []Violation) {
	for i := range t.Entries {
		e := &t.Entries[i]
		all = append(all, slowerThanOthers(t, e)...)
		if i > 0 {
			all = append(all, muchFasterThan(&t.Entries[i-1], e)...)
		}
		all = append(all, losesToFlat(e)...)
	}
	return all
}

func violation(guideline string, e *table.Entry, text string, entries ...*table.Entry) []Violation {
	return []Violation{{guideline, e.Collective, e.Levels, e.Bytes, text, append(entries, e)}}
}

func slowerThanOthers(t *table.Table, e *table.Entry) (all []Violation) {
	for _, s := range specializations {
		if s.special.String() != e.Collective {
			continue
		}
		sum, names := 0.0, ""
		var parts []*table.Entry
		for i, c := range s.general {
			other := t.Beside(e, c)
			if other == nil {
				break
			}
			_, high := other.Candidates[0].Interval()
			sum += high
			if i > 0 {
				names += " and "
			}
			names += c.String()
			parts = append(parts, other)
		}
		if low, _ := e.Candidates[0].Interval(); len(parts) == len(s.general) && low > sum {
			all = append(all, violation("slower than "+names, e,
				fmt.Sprintf("%.1f µs against %.1f µs", e.Candidates[0].NS/1e3, sum/1e3), parts...)...)
		}
	}
	return all
}

func muchFasterThan(small, large *table.Entry) []Violation {
	if small.Collective != large.Collective || small.Levels.Compare(large.Levels) != 0 || small.Place != large.Place {
		return nil
	}
	low, _ := small.Candidates[0].Interval()
	_, high := large.Candidates[0].Interval()
	if high >= muchFaster*low {
		return nil
	}
	return violation("more bytes are much faster", large, fmt.Sprintf("%.1f µs, but %s take %.1f µs",
		large.Candidates[0].NS/1e3, tasks.FormatBytes(small.Bytes), small.Candidates[0].NS/1e3), small)
}

// losesToFlat also finds choices before flat by a mere prediction, and by less than
// its error.
func losesToFlat(e *table.Entry) []Violation {
	best := e.Candidates[0]
	for _, c := range e.Candidates {
		if !c.Parsed.Shape.IsFlat() {
			continue
		}
		low, _ := best.Interval()
		_, high := best.Interval()
		flatLow, flatHigh := c.Interval()
		switch {
		case low > flatHigh:
			return violation("loses to flat", e, fmt.Sprintf("%.1f µs, flat %.1f µs", best.NS/1e3, c.NS/1e3))
		case best.From == table.FromPredicted && c.From != table.FromPredicted && high > flatLow:
			return violation("may lose to flat", e, fmt.Sprintf("predicted %.1f µs (up to %.1f µs), flat measured %.1f µs", best.NS/1e3, high/1e3, c.NS/1e3))
		}
		return nil
	}
	return nil
}

// Shares of a time, for a table's predictions on a machine.
const (
	tooLow   = 0.95 // predicted / simulated
	tooSlow  = 1.02 // simulated / the rule's plan, simulated
	rounding = 1e-3 // of a table's numbers
)

// ViolationsOn checks a table against a described machine, by simulations: no plan takes less than its bytes on
// the wire, the choice takes about as long as the table says, and no longer than the built-in rule's plan.
// Entries of machines without equal nodes in the order of ranks, and with other levels than nodes, are left
// out. like makes the request for a point. It returns how many entries it checked.
func ViolationsOn(ctx context.Context, m *machine.Machine, t *table.Table, reg submodules.Registry, like func(coll tasks.Collective, bytes int64, on *levels.Topology) (tasks.Request, error)) (all []Violation, checked int, err error) {
	for i := range t.Entries {
		e := &t.Entries[i]
		nodes, perNode := e.Levels.Machine()
		on, err := levels.Parse(fmt.Sprintf("%dx%d", nodes, perNode))
		if err != nil || e.Layout != table.Block || e.Uneven > 0 || table.SizesOf(on).Compare(e.Levels) != 0 {
			continue
		}
		coll, err := tasks.ParseCollective(e.Collective)
		if err != nil {
			return all, checked, err
		}
		r, err := like(coll, e.Bytes, on)
		if err != nil {
			return all, checked, err
		}
		some, err := violationsOn(ctx, m, e, r, on, reg)
		if err != nil {
			return all, checked, fmt.Errorf("%v on %v: %w", r, on, err)
		}
		all, checked = append(all, some...), checked+1
	}
	return all, checked, nil
}

// violationsOn is ViolationsOn for one entry.
func violationsOn(ctx context.Context, m *machine.Machine, e *table.Entry, r tasks.Request, on *levels.Topology, reg submodules.Registry) (all []Violation, err error) {
	least := price.Least(m, on, r)
	for _, c := range e.Candidates {
		if c.NS < least*(1-rounding) {
			all = append(all, violation("below the wire", e, fmt.Sprintf("%s of %v: %.1f µs, its bytes take %.1f µs on the wire", c.From, c.Plan, c.NS/1e3, least/1e3))...)
		}
	}
	meter := NewSimulatedMeter(on, m, reg)
	time := func(p tasks.Plan) float64 {
		if err != nil {
			return 0
		}
		var took measure.Timing
		took, err = meter.Collective(ctx, r, p, stats.Stop{})
		return took.Slowest.P50
	}
	best := e.Candidates[0]
	ns, rule := time(best.Parsed), time(Space{Registry: reg}.Rule(r, on))
	if err != nil {
		return nil, err
	}
	if best.NS < tooLow*ns {
		all = append(all, violation("takes longer than the table says", e, fmt.Sprintf("%v: %.1f µs %s, %.1f µs simulated", best.Plan, best.NS/1e3, best.From, ns/1e3))...)
	}
	if ns > tooSlow*rule {
		all = append(all, violation("loses to the built-in rule", e, fmt.Sprintf("%v: %.1f µs simulated, the rule's plan %.1f µs", best.Plan, ns/1e3, rule/1e3))...)
	}
	return all, nil
}

// Remeasure measures all candidates of the entries that break guidelines again, in place of the table's.
// All ranks of topology on must call it. links names its links between nodes; entries of other machines
// and places stay. like makes the request for a point. It returns how many entries were measured.
func Remeasure(ctx context.Context, m Meter, t *table.Table, on *levels.Topology, links string, stop stats.Stop, like func(coll tasks.Collective, bytes int64) (tasks.Request, error)) (n int, err error) {
	done := map[string]bool{}
	for _, v := range Violations(t) {
		for _, e := range v.entries {
			if done[e.Key()] || e.Levels.Compare(table.SizesOf(on)) != 0 {
				continue
			}
			coll, err := tasks.ParseCollective(e.Collective)
			if err != nil {
				return n, err
			}
			r, err := like(coll, e.Bytes)
			if err != nil {
				return n, err
			}
			if e.Uneven > 0 {
				if r, err = tasks.MakeUneven(r, e.Uneven, on.Size()); err != nil {
					return n, err
				}
			}
			if e.Place != table.PlaceOf(r, on, links) {
				continue
			}
			done[e.Key()] = true
			for i := range e.Candidates {
				c := &e.Candidates[i]
				timing, err := m.Collective(ctx, r, c.Parsed, stop)
				if err != nil {
					return n, fmt.Errorf("measure %v with %v: %w", r, c.Parsed, err)
				}
				one := NewMeasurement(r, on, c.Parsed, timing)
				one.Place = e.Place
				c.NS, c.Low, c.High, c.From = one.NS, one.Low, one.High, t.Origin()
				t.Measured = append(t.Measured, one)
			}
			n++
		}
	}
	t.Sort()
	return n, nil
}
