package table

import (
	"fmt"
	"math"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/strictjson"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Parse reads a decision table and checks all of it: keys and versions; plans must be
// whole and name members of reg; each point is there once. Each error begins with
// name:line.
func Parse(name string, data []byte, reg submodules.Registry) (*Table, error) {
	r, err := strictjson.NewReader(name, data)
	if err != nil {
		return nil, err
	}
	p := tableReader{Reader: r, name: name, reg: reg, seen: map[string]int{}}
	t := p.table()
	if err := p.Err(); err != nil {
		return nil, err
	}
	t.Sort()
	return t, nil
}

// tableReader reads a table's file.
type tableReader struct {
	*strictjson.Reader
	name string
	reg  submodules.Registry
	seen map[string]int // line of each entry's key
}

func (p *tableReader) table() *Table {
	t := &Table{}
	keys := []string{"tierflow_table", "provenance", "entries", "measured", "costs"}
	p.Object("a decision table", keys, 3, func(key string) {
		switch key {
		case "tierflow_table":
			p.version(t)
		case "provenance":
			p.Decode(&t.Provenance, key)
		case "entries":
			p.Array(`"entries"`, func() {
				var e Entry
				if line := p.Line(); p.Decode(&e, "an entry") && p.entry(&e, line) {
					t.Entries = append(t.Entries, e)
				}
			})
		case "measured":
			p.Array(`"measured"`, func() {
				var m Measurement
				if line := p.Line(); p.Decode(&m, "a measurement") && p.measurement(&m, line) {
					t.Measured = append(t.Measured, m)
				}
			})
		case "costs":
			p.costs(t)
		}
	})
	p.origins(t)
	for i := range t.Entries { // older files say so only once
		t.Entries[i].Tried = t.Entries[i].Tried || t.Provenance.Method == Tried
	}
	return t
}

// origins complains about candidates of another origin than the table's.
func (p *tableReader) origins(t *Table) {
	for i := range t.Entries {
		for _, c := range t.Entries[i].Candidates {
			if c.From != FromPredicted && c.From != t.Origin() {
				p.Add("%s: entry for %s: candidate %q is from %q, but the provenance says that times were %s", p.name, t.Entries[i].Key(), c.Plan, c.From, t.Origin())
			}
		}
	}
}

// version reads the version of the table's format.
func (p *tableReader) version(t *Table) {
	line := p.Line()
	switch {
	case !p.Decode(&t.Version, "the version"), t.Version == Version:
	case t.Version == 1:
		p.Complain(line, "tierflow_table 1; this program reads version %d, whose entries say on which layout, ranks and links they were measured: tune again", Version)
	default:
		p.Complain(line, "tierflow_table %d; this program reads version %d", t.Version, Version)
	}
}

// costs reads the costs of tasks. Their package names the place of a mistake.
func (p *tableReader) costs(t *Table) {
	name := fmt.Sprintf("%s, costs from line %d", p.name, p.Line())
	var err error
	if t.Costs, err = costs.Load(name, p.Raw()); err != nil {
		p.Add("%w", err)
	}
}

// entry checks an entry and parses its plans.
func (p *tableReader) entry(e *Entry, line int) bool {
	before := p.Len()
	p.point(e.Collective, e.Levels, e.Place, e.Bytes, line)
	if first, twice := p.seen[e.Key()]; twice {
		p.Complain(line, "a second entry for %s; the first is on line %d", e.Key(), first)
	}
	p.seen[e.Key()] = line
	if len(e.Candidates) == 0 {
		p.Complain(line, "entry for %s has no candidates", e.Key())
	}
	for i := range e.Candidates {
		c := &e.Candidates[i]
		c.Parsed = p.plan(c.Plan, line)
		if c.From != FromMeasured && c.From != FromPredicted && c.From != FromSimulated {
			p.Complain(line, "candidate %q: from %q; known are %s, %s, %s", c.Plan, c.From, FromMeasured, FromPredicted, FromSimulated)
		}
		if err := checkTimes(c.NS, c.Low, c.High); err != nil {
			p.Complain(line, "candidate %q: %w", c.Plan, err)
		}
	}
	return p.Len() == before
}

// measurement checks a measurement.
func (p *tableReader) measurement(m *Measurement, line int) bool {
	before := p.Len()
	p.point(m.Collective, m.Levels, m.Place, m.Bytes, line)
	p.plan(m.Plan, line)
	if err := checkTimes(m.NS, m.Low, m.High); err != nil {
		p.Complain(line, "plan %q: %w", m.Plan, err)
	}
	return p.Len() == before
}

// point checks the point of an entry or a measurement.
func (p *tableReader) point(coll string, sizes Sizes, place Place, bytes int64, line int) {
	c, err := tasks.ParseCollective(coll)
	if err != nil {
		p.Complain(line, "%w", err)
	}
	if why := place.check(c); err == nil && why != "" {
		p.Complain(line, "%s", why)
	}
	if bytes < 0 || c == tasks.Barrier && bytes != 0 {
		p.Complain(line, "bytes %d: from 0 on, and 0 for a barrier", bytes)
	}
	if len(sizes) == 0 {
		p.Complain(line, `no levels; they are the ranks of each level's largest group, as in {"i": 4, "s": 2}`)
	}
	for _, symbol := range sortedKeys(sizes) {
		if n := sizes[symbol]; len(symbol) != 1 || symbol[0] < 'a' || symbol[0] > 'z' || n < 1 || n > levels.MaxRanks {
			p.Complain(line, "levels: %q has %d ranks; levels are named by one letter and have 1 to %d", symbol, n, levels.MaxRanks)
		}
	}
}

// plan parses a plan that must be whole.
func (p *tableReader) plan(text string, line int) tasks.Plan {
	plan, err := tasks.ParsePlan(text)
	if err == nil {
		err = p.reg.Check(plan)
	}
	if err == nil && (plan.Shape == 0 || plan.Segment == 0 || plan.Window == 0) {
		err = fmt.Errorf("plan %q lacks a shape, a segment size (fs) or a window (w)", text)
	}
	if err != nil {
		p.Complain(line, "%w", err)
	}
	return plan
}

// checkTimes wants a time above 0 inside its interval.
func checkTimes(ns, low, high float64) error {
	if !(ns > 0) || math.IsInf(ns, 0) {
		return fmt.Errorf("ns %v: a time is above 0", ns)
	}
	if (low != 0 || high != 0) && !(0 <= low && low <= ns && ns <= high && !math.IsInf(high, 0)) {
		return fmt.Errorf("low_ns %v, ns %v, high_ns %v: a time lies in its interval", low, ns, high)
	}
	return nil
}

// MaxBytes bounds the file of a table.
const MaxBytes = 256 << 20
