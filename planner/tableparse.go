package planner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// maxTableComplaints bounds the errors that are listed: a file of something else
// would give one for each line.
const maxTableComplaints = 10

// ParseTable reads a decision table and checks all of it: keys, versions, that
// plans are whole and name what reg has, that each point is there once. name is
// for errors, each of which begins with name:line.
func ParseTable(name string, data []byte, reg submodules.Registry) (*Table, error) {
	p := tableReader{name: name, data: data, reg: reg, seen: map[string]int{}}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		at := int64(len(data))
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset - 1
		}
		return nil, fmt.Errorf("%s:%d: %w", name, p.line(at), err)
	}
	t := p.table()
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	t.Sort()
	return t, nil
}

// tableReader reads JSON of right syntax value by value, so that it can say on
// which line something is wrong.
type tableReader struct {
	name string
	data []byte
	reg  submodules.Registry
	dec  *json.Decoder
	seen map[string]int // line of each entry's key
	errs []error
}

// line is that of an offset, from 1.
func (p *tableReader) line(offset int64) int {
	return 1 + bytes.Count(p.data[:min(max(offset, 0), int64(len(p.data)))], []byte("\n"))
}

func (p *tableReader) add(offset int64, format string, args ...any) {
	switch {
	case len(p.errs) < maxTableComplaints:
		p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.name, p.line(offset), fmt.Errorf(format, args...)))
	case len(p.errs) == maxTableComplaints:
		p.errs = append(p.errs, fmt.Errorf("%s: and more", p.name))
	}
}

// here is the offset of the next value.
func (p *tableReader) here() int64 {
	at := p.dec.InputOffset()
	for at < int64(len(p.data)) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

// open enters an object or array; if the next value is none it complains.
func (p *tableReader) open(bracket json.Delim, what string) bool {
	at := p.here()
	token, err := p.dec.Token()
	if err == nil && token == bracket {
		return true
	}
	p.add(at, "%s must be %s", what, map[json.Delim]string{'{': "an object", '[': "an array"}[bracket])
	return false
}

func (p *tableReader) table() *Table {
	p.dec = json.NewDecoder(bytes.NewReader(p.data))
	t := &Table{}
	if !p.open('{', "a decision table") {
		return t
	}
	given := map[string]bool{}
	for p.dec.More() {
		at := p.here()
		token, err := p.dec.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			break
		}
		if given[key] {
			p.add(at, "key %q is given twice", key)
		}
		given[key] = true
		if !p.value(t, key, at) {
			return t // what follows a value of the wrong type would be misread
		}
	}
	for _, key := range []string{"tierflow_table", "provenance", "entries"} {
		if !given[key] {
			p.add(0, "no key %q; a decision table has tierflow_table (its version), provenance and entries", key)
		}
	}
	return t
}

// value reads the value of one of the table's keys.
func (p *tableReader) value(t *Table, key string, at int64) bool {
	switch key {
	case "tierflow_table":
		if p.decode(&t.Version, "the version") && t.Version != TableVersion {
			p.add(at, "tierflow_table %d; this program reads version %d", t.Version, TableVersion)
		}
	case "provenance":
		p.decode(&t.Provenance, "provenance")
	case "entries":
		return p.each("entries", func(at int64) {
			var e Entry
			if p.decode(&e, "an entry") && p.entry(&e, at) {
				t.Entries = append(t.Entries, e)
			}
		})
	case "measured":
		return p.each("measured", func(at int64) {
			var m Measurement
			if p.decode(&m, "a measurement") && p.measurement(&m, at) {
				t.Measured = append(t.Measured, m)
			}
		})
	case "costs":
		p.costs(t)
	default:
		p.add(at, "unknown key %q; known are tierflow_table, provenance, entries, measured, costs", key)
		p.decode(new(any), "it")
	}
	return true
}

// costs reads the costs of tasks, whose package says where in them something is
// wrong.
func (p *tableReader) costs(t *Table) {
	at := p.here()
	var raw json.RawMessage
	if err := p.dec.Decode(&raw); err != nil {
		p.add(at, "costs: %w", err)
		return
	}
	var err error
	if t.Costs, err = costs.Load(fmt.Sprintf("%s, costs from line %d", p.name, p.line(at)), raw); err != nil {
		p.errs = append(p.errs, err)
	}
}

// each calls f for each value of an array, with its offset.
func (p *tableReader) each(what string, f func(at int64)) bool {
	if !p.open('[', what) {
		return false
	}
	for p.dec.More() {
		f(p.here())
	}
	_, err := p.dec.Token()
	return err == nil
}

// decode reads one value into v, which must not have other keys than v's type.
func (p *tableReader) decode(v any, what string) bool {
	at := p.here()
	var raw json.RawMessage
	if err := p.dec.Decode(&raw); err != nil {
		p.add(at, "%s: %w", what, err)
		return false
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	err := strict.Decode(v)
	if err == nil {
		return true
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		p.add(at+wrong.Offset-1, "%s: %q is a %s", what, wrong.Field, wrong.Value)
		return false
	}
	if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
		p.add(at+int64(max(bytes.Index(raw, []byte(field)), 0)), "%s: unknown key %s", what, field)
		return false
	}
	p.add(at, "%s: %w", what, err)
	return false
}

// entry checks an entry and parses its plans.
func (p *tableReader) entry(e *Entry, at int64) bool {
	before := len(p.errs)
	p.point(e.Collective, e.Levels, e.Bytes, at)
	if first, twice := p.seen[e.key()]; twice {
		p.add(at, "a second entry for %s; the first is on line %d", e.key(), first)
	}
	p.seen[e.key()] = p.line(at)
	if len(e.Candidates) == 0 {
		p.add(at, "entry for %s has no candidates", e.key())
	}
	for i := range e.Candidates {
		c := &e.Candidates[i]
		c.plan = p.plan(c.Plan, at)
		if c.From != FromMeasured && c.From != FromPredicted {
			p.add(at, "candidate %q: from %q; known are %s, %s", c.Plan, c.From, FromMeasured, FromPredicted)
		}
		if err := checkTimes(c.NS, c.Low, c.High); err != nil {
			p.add(at, "candidate %q: %w", c.Plan, err)
		}
	}
	return len(p.errs) == before
}

// point checks what an entry or a measurement is about.
func (p *tableReader) point(coll string, sizes Sizes, bytes, at int64) {
	c, err := tasks.ParseCollective(coll)
	if err != nil {
		p.add(at, "%w", err)
	}
	if bytes < 0 || c == tasks.Barrier && bytes != 0 {
		p.add(at, "bytes %d: from 0 on, and 0 for a barrier", bytes)
	}
	if len(sizes) == 0 {
		p.add(at, `no levels; they are the ranks of each level's largest group, as in {"i": 4, "s": 2}`)
	}
	for _, symbol := range sortedKeys(sizes) {
		if n := sizes[symbol]; len(symbol) != 1 || symbol[0] < 'a' || symbol[0] > 'z' || n < 1 || n > levels.MaxRanks {
			p.add(at, "levels: %q has %d ranks; levels are named by one letter and have 1 to %d", symbol, n, levels.MaxRanks)
		}
	}
}

// plan parses a plan that must be whole.
func (p *tableReader) plan(text string, at int64) tasks.Plan {
	plan, err := tasks.ParsePlan(text)
	if err == nil {
		err = p.reg.Check(plan)
	}
	if err == nil && (plan.Shape == 0 || plan.Segment == 0 || plan.Window == 0) {
		err = fmt.Errorf("plan %q lacks a shape, a segment size (fs) or a window (w)", text)
	}
	if err != nil {
		p.add(at, "%w", err)
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

// readTable reads all of a file that may be a pipe, but not without end.
func readTable(name string, r io.Reader, reg submodules.Registry) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTable+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTable {
		return nil, fmt.Errorf("%s: over %s; that is no decision table", name, tasks.FormatBytes(maxTable))
	}
	return ParseTable(name, data, reg)
}

// maxTable bounds a file that is read as a table.
const maxTable = 256 << 20

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func compare[T cmp.Ordered](a, b T) int { return cmp.Compare(a, b) }

func firstNonZero(all ...int) int { return cmp.Or(all...) }

// compareSizes orders machines: by their levels' names, then by ranks, the
// smallest first.
func compareSizes(a, b Sizes) int {
	keys := sortedKeys(a)
	if c := slices.Compare(keys, sortedKeys(b)); c != 0 {
		return c
	}
	for _, k := range keys {
		if c := cmp.Compare(a[k], b[k]); c != 0 {
			return c
		}
	}
	return 0
}
