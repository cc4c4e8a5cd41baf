package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// setVersion is the version of the file format.
const setVersion = 1

// recordedSet is a collective's times by point and plan. A method can measure from it in place of a
// machine.
type recordedSet struct {
	Version    int              `json:"tierflow_set"`
	Collective string           `json:"collective"`
	On         string           `json:"on"`                // the machine, in words
	Machine    *machine.Machine `json:"machine,omitempty"` // the simulated one; nil: times were measured
	Samples    int              `json:"samples,omitempty"` // calls of a measurement, if they are not known for each
	Plans      []string         `json:"plans"`
	Points     []setRow         `json:"points"`
	Methods    []methodOutcome  `json:"methods,omitempty"` // other searches of the same machine

	parsed []tasks.Plan
	of     *table.Table // the set's source; nil: a file
}

// setRow is one request's times on one machine, by plan.
type setRow struct {
	Nodes   int       `json:"nodes"`
	PerNode int       `json:"ppn"`
	Bytes   int64     `json:"bytes"`
	NS      []float64 `json:"ns"`              // 0: the plan doesn't serve the request
	Spent   []float64 `json:"spent,omitempty"` // ns of the whole measurement; nil: Samples calls

	entry *table.Entry // of the set's source; nil: a file
}

// methodOutcome is another method's choices, and the time of its search.
type methodOutcome struct {
	Method  string    `json:"method"`
	Seconds float64   `json:"seconds"`
	NS      []float64 `json:"ns"` // by point: the time of its choice
}

// isOdd reports whether a row's size is no power of two.
func (r *setRow) isOdd() bool { return r.Bytes&(r.Bytes-1) != 0 }

// best returns the least time of a row, ns.
func (r *setRow) best() float64 {
	least := math.Inf(1)
	for _, ns := range r.NS {
		if ns > 0 {
			least = min(least, ns)
		}
	}
	return least
}

// spent returns how long it takes to measure a row with a plan, seconds.
func (s *recordedSet) spent(row, plan int) float64 {
	r := &s.Points[row]
	if r.Spent != nil {
		return r.Spent[plan] / 1e9
	}
	return r.NS[plan] * float64(s.Samples) / 1e9
}

// parseSet reads a file written by [recordedSet.encode].
func parseSet(name string, data []byte) (*recordedSet, error) {
	s := &recordedSet{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, s.check(name)
}

// check parses the plans, and complains if the set can't be replayed.
func (s *recordedSet) check(name string) error {
	if s.Version != setVersion {
		return fmt.Errorf("%s: tierflow_set is %d; allowed is %d", name, s.Version, setVersion)
	}
	if len(s.Points) == 0 || len(s.Plans) == 0 {
		return fmt.Errorf("%s: %d points and %d plans; allowed are 1 or more", name, len(s.Points), len(s.Plans))
	}
	for _, text := range s.Plans {
		p, err := tasks.ParsePlan(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.parsed = append(s.parsed, p)
	}
	for i, r := range s.Points {
		if len(r.NS) != len(s.Plans) || r.Spent != nil && len(r.Spent) != len(s.Plans) || math.IsInf(r.best(), 0) || r.Nodes < 1 || r.PerNode < 1 {
			return fmt.Errorf("%s: point %d has %d nodes, %d ranks a node and %d times; allowed are 1 or more, and a time for each of %d plans, one above 0",
				name, i, r.Nodes, r.PerNode, len(r.NS), len(s.Plans))
		}
	}
	for _, o := range s.Methods {
		if len(o.NS) != len(s.Points) {
			return fmt.Errorf("%s: %s has %d times; allowed are %d, one for each point", name, o.Method, len(o.NS), len(s.Points))
		}
	}
	return nil
}

// encode returns the set as a file, a line for each point.
func (s *recordedSet) encode() ([]byte, error) {
	var b bytes.Buffer
	head := *s
	head.Points = nil
	data, err := json.Marshal(&head)
	if err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut(data, []byte(`"points":null`))
	b.Write(before)
	b.WriteString("\n\"points\":[")
	for i := range s.Points {
		line, err := json.Marshal(&s.Points[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]")
	b.Write(after)
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// prices returns the plans' prices on a machine, ns, by point and plan; 0: there is none.
// Nodes are numbered one after the other.
func (s *recordedSet) prices(m *machine.Machine) ([][]float64, error) {
	coll, err := tasks.ParseCollective(s.Collective)
	if err != nil {
		return nil, err
	}
	ns := make([][]float64, len(s.Points))
	for i, row := range s.Points {
		on, err := levels.Parse(fmt.Sprintf("%dx%d", row.Nodes, row.PerNode))
		if err != nil {
			return nil, err
		}
		p, err := price.New(m, on, labkit.Request(coll, row.Bytes), all.Submodules())
		if err != nil {
			return nil, err
		}
		ns[i] = make([]float64, len(s.Plans))
		for k, plan := range s.parsed {
			if one, known := p.Plan(plan); known && row.NS[k] > 0 {
				ns[i][k] = one.NS
			}
		}
	}
	return ns, nil
}
