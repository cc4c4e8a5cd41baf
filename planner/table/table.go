// Package table keeps decision tables: the fast plans for a collective, a machine and a
// size. It reads and checks them, writes them, and looks requests up.
//
// It never measures and opens no file. Equal tables and requests give equal answers, on
// all ranks.
//
//	t, err := table.Parse("table.json", data, registry)
//	answer := t.Find(request, topology, links, registry)
//	fmt.Println(answer.Estimates[0].Plan)
package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Version is the version of this package's decision tables.
const Version = 2

// Table is a decision table: the fast plans for each collective, machine and size, as tierflow tune
// measured or predicted them. A table is total: for requests far from all of its entries the built-in rule
// decides, and Explain says so. It is not changed once it is in use.
type Table struct {
	Version    int        `json:"tierflow_table"`
	Provenance Provenance `json:"provenance"`
	// Entries are the measured points, in the order of [Table.Sort].
	Entries []Entry `json:"entries"`
	// Measured is everything the table was made from. A search resumes from it and
	// tierflow plan --explain shows it; decisions don't need it.
	Measured []Measurement `json:"measured,omitempty"`
	// Costs are those of tasks, from which the tasks methods predict. As Measured.
	Costs *costs.Book `json:"costs,omitempty"`
}

// Provenance is the origin of a table's numbers.
type Provenance struct {
	Method    string `json:"method"`
	Simulated string `json:"simulated,omitempty"` // the described machine of simulated times; empty: they were measured
	// Regime says how calls followed each other. Zero is [costs.Single]: older tables lack
	// it, and their calls began together, one by one.
	Regime            costs.Regime `json:"regime,omitempty"`
	Date              string       `json:"date"` // RFC 3339
	Tierflow          string       `json:"tierflow,omitempty"`
	Hosts             []string     `json:"hosts,omitempty"`
	CPUs              int          `json:"cpus,omitempty"` // of the host of rank 0
	Kernel            string       `json:"kernel,omitempty"`
	Machines          []string     `json:"machines,omitempty"` // topologies of the ranks
	Types             string       `json:"types,omitempty"`    // element type and operation of reductions
	Links             string       `json:"links,omitempty"`
	CongestionControl string       `json:"congestion_control,omitempty"`
	Stop              string       `json:"stop,omitempty"`      // rule that ended each measurement
	Intervals         string       `json:"intervals,omitempty"` // meaning of low_ns and high_ns
	Budget            string       `json:"budget,omitempty"`    // time for the search
	Seconds           float64      `json:"seconds"`             // the search took
	Configurations    int          `json:"configurations"`      // measured, of each size if the method does so
	Planned           int          `json:"planned"`             // the search would measure without a budget
	Rejected          Counts       `json:"rejected,omitempty"`
}

// Tried is the method of a table made by trials of communicators alone: all of its entries are [Entry.Tried].
const Tried = "tried when collectives were made"

// CutShort reports whether the search that made the table ended before it had measured what it would: by its budget.
func (p *Provenance) CutShort() bool { return p.Configurations < p.Planned }

// Models is the method of a table made to predict: it measures no plan, however long it may search.
const Models = "models"

// Counts are numbers by reason.
type Counts map[string]int

// Entry is the knowledge about one point.
type Entry struct {
	Collective string `json:"collective"`
	// Levels are the ranks of the largest group of each level, by its symbol: i is
	// the nodes and s the ranks per node of a machine of two levels.
	Levels Sizes `json:"levels"`
	Place
	// Bytes is the size of a rank's buffer, or of its block if there are blocks: the mean one
	// of different ones.
	Bytes      int64       `json:"bytes"`
	Candidates []Candidate `json:"candidates"` // the fastest first
	// Tried means that a communicator tried some plans when a collective was made. The entry answers for
	// this point only, and not for sizes and machines near it.
	Tried bool `json:"tried,omitempty"`
}

// The origins of a candidate's time.
const (
	FromMeasured  = "measured"
	FromPredicted = "predicted"
	FromSimulated = "simulated" // in place of measured in a table of simulated times
)

// The origins of an answer's time beside those.
const (
	FromInterpolated = "interpolated" // between measured points
	FromExtrapolated = "extrapolated" // beyond them
	FromElsewhere    = "elsewhere"    // of another place
	FromCarried      = "carried over" // from a machine of other sizes, the only one near
)

// Candidate is a plan and how long it takes.
type Candidate struct {
	Plan string  `json:"plan"`
	NS   float64 `json:"ns"`
	// Low and High are the ends of the interval of confidence, see [Provenance]; of a prediction they are those of the measurements it is from. 0: none.
	Low  float64 `json:"low_ns,omitempty"`
	High float64 `json:"high_ns,omitempty"`
	From string  `json:"from"` // [FromMeasured], [FromSimulated] or [FromPredicted]

	Parsed tasks.Plan `json:"-"` // Plan, parsed
}

// Measurement is a measured collective with a plan.
type Measurement struct {
	Collective string `json:"collective"`
	Levels     Sizes  `json:"levels"`
	Place
	Bytes   int64   `json:"bytes"`
	Plan    string  `json:"plan"`
	NS      float64 `json:"ns"` // median over samples of the slowest rank's time
	Low     float64 `json:"low_ns"`
	High    float64 `json:"high_ns"`
	Samples int     `json:"samples"`
	Spent   float64 `json:"spent_ns,omitempty"` // the measurement took so long; 0: unknown
	Turns   int     `json:"turns,omitempty"`    // taken with its rivals; 0: it was measured by itself
}

// IsOf reports whether an entry is about the measured point.
func (m *Measurement) IsOf(e *Entry) bool {
	return m.Collective == e.Collective && m.Bytes == e.Bytes && m.Levels.Compare(e.Levels) == 0 && m.Place == e.Place
}

// Interval returns the bounds of a candidate's time: the time itself without an interval.
func (c Candidate) Interval() (low, high float64) {
	if c.Low == 0 && c.High == 0 {
		return c.NS, c.NS
	}
	return c.Low, c.High
}

// PointOf returns the entry, without candidates, for a request on a topology. links names the links
// between nodes; empty: unknown.
func PointOf(r tasks.Request, t *levels.Topology, links string) Entry {
	return Entry{Collective: r.Coll.String(), Levels: SizesOf(t), Place: PlaceOf(r, t, links), Bytes: r.MeanBytes()}
}

// Largest is the size of the largest block, or of a rank's buffer.
func (e *Entry) Largest() int64 { return e.Place.largest(e.Bytes) }

// largest is the size of the largest block, of blocks with a mean.
func (p Place) largest(mean int64) int64 { return mean * int64(max(p.Uneven, 1)) }

// Key names the point of an entry.
func (e *Entry) Key() string {
	return fmt.Sprintf("%s %v %d on %v", e.Collective, e.Levels, e.Bytes, e.Place)
}

// isOf reports whether an entry is about the same point as another one.
func (e *Entry) isOf(o *Entry) bool {
	return e.Collective == o.Collective && e.Bytes == o.Bytes && e.Levels.Compare(o.Levels) == 0 && e.Place == o.Place
}

// Sort brings entries and candidates in order: by collective, levels and bytes,
// and by time.
func (t *Table) Sort() {
	order := func(name string) int {
		return slices.IndexFunc(tasks.Requestable(), func(c tasks.Collective) bool { return c.String() == name })
	}
	slices.SortStableFunc(t.Entries, func(a, b Entry) int {
		return cmp.Or(order(a.Collective)-order(b.Collective), a.Levels.Compare(b.Levels), a.Place.Compare(b.Place), cmp.Compare(a.Bytes, b.Bytes))
	})
	for i := range t.Entries {
		slices.SortStableFunc(t.Entries[i].Candidates, func(a, b Candidate) int { return cmp.Compare(a.NS, b.NS) })
	}
}

// Encode is the table as a file: entries and measurements a line each.
func (t *Table) Encode() ([]byte, error) {
	var b bytes.Buffer
	head, err := json.MarshalIndent(t.Provenance, "  ", "  ")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "{\n  \"tierflow_table\": %d,\n  \"provenance\": %s,\n  \"entries\": ", t.Version, head)
	if err := encodeLines(&b, t.Entries); err != nil {
		return nil, err
	}
	if len(t.Measured) > 0 {
		b.WriteString(",\n  \"measured\": ")
		if err := encodeLines(&b, t.Measured); err != nil {
			return nil, err
		}
	}
	if t.Costs != nil && len(t.Costs.Keys())+len(t.Costs.PipelineKeys()) > 0 {
		book, err := t.Costs.MarshalJSON()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",\n  \"costs\": %s", bytes.TrimSpace(book))
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func encodeLines[T any](b *bytes.Buffer, all []T) error {
	b.WriteByte('[')
	for i := range all {
		line, err := json.Marshal(&all[i])
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(line)
	}
	b.WriteString("\n  ]")
	return nil
}

// Decisions returns the part of the table for decisions.
func (t *Table) Decisions() *Table {
	short := *t
	short.Measured, short.Costs = nil, nil
	return &short
}

// Replace puts an entry in place of the one for the same point. An entry without
// candidates would say nothing.
func (t *Table) Replace(e Entry) {
	t.Entries = slices.DeleteFunc(t.Entries, func(old Entry) bool { return old.isOf(&e) })
	if len(e.Candidates) > 0 {
		t.Entries = append(t.Entries, e)
	}
}

// Knows reports whether the table has an entry for the same point that also answers for points near it.
func (t *Table) Knows(e *Entry) bool {
	return slices.ContainsFunc(t.Entries, func(old Entry) bool { return !old.Tried && old.isOf(e) })
}

// Join adds what another table knows of machines that t has no entry for, collective by collective. Tables of
// another regime, and of simulated and measured times, don't mix: nothing is added then.
func (t *Table) Join(o *Table) (added bool) {
	if t.Regime() != o.Regime() || t.Provenance.Simulated != o.Provenance.Simulated {
		return false
	}
	type machine struct {
		coll, sizes string
		place       Place
	}
	known := map[machine]bool{}
	for i := range t.Entries {
		if e := &t.Entries[i]; !e.Tried {
			known[machine{e.Collective, e.Levels.String(), e.Place}] = true
		}
	}
	for _, e := range o.Entries {
		if !e.Tried && !known[machine{e.Collective, e.Levels.String(), e.Place}] {
			t.Entries, added = append(t.Entries, e), true
		}
	}
	if added {
		t.Provenance.Hosts = merge(t.Provenance.Hosts, o.Provenance.Hosts)
		t.Provenance.Machines = merge(t.Provenance.Machines, o.Provenance.Machines)
		t.Sort()
	}
	return added
}

// merge returns all names, each once.
func merge(names, more []string) []string {
	all := slices.Clone(names)
	for _, name := range more {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Measures reports whether the fastest plan for the same point in the table is more than a mere
// prediction.
func (t *Table) Measures(e *Entry) bool {
	return slices.ContainsFunc(t.Entries, func(old Entry) bool {
		return old.isOf(e) && len(old.Candidates) > 0 && old.Candidates[0].From != FromPredicted
	})
}

// Origin returns the origin of the table's times but the predicted ones: [FromMeasured], or
// [FromSimulated] if nothing was measured.
func (t *Table) Origin() string {
	if t.Provenance.Simulated != "" {
		return FromSimulated
	}
	return FromMeasured
}

// Regime returns the regime of the calls behind the table's times.
func (t *Table) Regime() costs.Regime { return cmp.Or(t.Provenance.Regime, costs.Single) }

// Book returns the table's costs of tasks. A table without any gets an empty book.
func (t *Table) Book() *costs.Book {
	if t.Costs == nil {
		t.Costs = &costs.Book{}
	}
	return t.Costs
}

// Beside finds the entry of another collective for the same point and place as e, whatever
// is reduced; nil if there is none.
func (t *Table) Beside(e *Entry, c tasks.Collective) *Entry {
	for i := range t.Entries {
		o := &t.Entries[i]
		if o.Collective == c.String() && o.Bytes == e.Bytes && o.Levels.Compare(e.Levels) == 0 &&
			o.Layout == e.Layout && o.Ranks == e.Ranks && o.Links == e.Links && o.Uneven == e.Uneven {
			return o
		}
	}
	return nil
}
