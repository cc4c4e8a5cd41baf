package peers

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/distill"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/rules/foreign"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// byRules is the variant of Open MPI with rules that were made of the sweep.
const byRules = "rules by tierflow, yield"

// record is a decision table of the sweep's times. Each of Open MPI's algorithms is the plan that
// does the same. The table is for Open MPI, not for tierflow.
type record struct {
	table.Table
	on    *levels.Topology
	links string
}

// newRecord returns an empty record.
func newRecord(topo string, t *peerTable) (*record, error) {
	on, err := levels.Parse(topo)
	if err != nil {
		return nil, err
	}
	r := &record{on: on, links: t.Rate}
	r.Version = table.Version
	r.Provenance = table.Provenance{
		Method: "sweep of Open MPI's algorithms", Date: t.Date, Tierflow: t.Versions[ourselves], CPUs: t.CPUs, Kernel: t.Kernel,
		Machines: []string{topo}, Links: t.Rate, CongestionControl: t.Congestion, Types: tasks.Float32.String() + " " + tasks.Sum.String(),
	}
	return r, nil
}

// theirPlan returns the plan that does what Open MPI's forced algorithm does; empty: none.
func theirPlan(op string, algorithm, segment int) string {
	text, err := foreign.Expand(fmt.Sprintf("%s:%s=%d/%d", op, foreign.OpenMPI, algorithm, segment))
	if err != nil {
		return "" // no counterpart, or blocks that differ
	}
	_, plan, _ := strings.Cut(text, ":")
	return plan
}

// add adds the least time of a setting, if a plan does the same. Other programs make calls longer
// only.
func (r *record) add(s setting, row peerRow) error {
	coll, err := tasks.ParseCollective(row.Collective)
	if err != nil || s.plan == "" {
		return err
	}
	parsed, err := tasks.ParsePlan(s.plan)
	if err != nil {
		return err
	}
	req := tasks.Request{Coll: coll, Type: tasks.Float32, Count: row.Bytes / 4}
	if req.Reduces() {
		req.Op = tasks.Sum
	}
	e := table.Entry{Collective: row.Collective, Levels: table.SizesOf(r.on), Place: table.PlaceOf(req, r.on, r.links), Bytes: row.Bytes}
	for i := range r.Entries {
		if r.Entries[i].Key() == e.Key() {
			e.Candidates = r.Entries[i].Candidates
		}
	}
	e.Candidates = append(e.Candidates, table.Candidate{Plan: parsed.String(), NS: row.Min * 1e3, From: table.FromMeasured, Parsed: parsed})
	r.Replace(e)
	return nil
}

// file returns the record as a decision table.
func (r *record) file() ([]byte, error) {
	r.Sort()
	text, err := r.Encode()
	if err == nil {
		_, err = table.Parse("the record", text, all.Submodules())
	}
	return text, err
}

// ruled writes rules that were made of the record as a file of Open MPI's, and returns the
// setting that has them.
func (s site) ruled(r *record, notes io.Writer) (of setting, err error) {
	of = setting{library: openMPI, variant: byRules}
	made, err := distill.Rules(&r.Table, distill.Bounds{})
	if err != nil {
		return of, err
	}
	base, err := rules.Parse("the sweep", made.Text)
	if err != nil {
		return of, err
	}
	text, lost := foreign.WriteClassic(base, foreign.Layout{PerNode: int64(s.perNode)}, foreign.For4)
	for _, n := range lost {
		fmt.Fprintf(notes, "# rules for Open MPI: %v\n", n)
	}
	for line := range strings.Lines(made.Text) {
		fmt.Fprintf(notes, "# rules: %s", line)
	}
	name := filepath.Join(s.folder, "openmpi.rules")
	of.mca = append([]string{"coll_tuned_use_dynamic_rules", "1", "coll_tuned_dynamic_rules_filename", name}, yielding[true]...)
	return of, os.WriteFile(name, []byte(text), 0o644)
}

// noteRules says how long Open MPI takes by rules, by its time as it is.
func (t *peerTable) noteRules(w io.Writer) {
	usual := map[string]*peerResult{}
	for _, r := range t.Results {
		if r.Library == openMPI && r.Variant == "tuned, "+yieldName(true) {
			usual[r.cell()] = r
		}
	}
	var logs, least, most float64
	var words []string
	for _, r := range t.Results {
		base := usual[r.cell()]
		if r.Variant != byRules || base == nil {
			continue
		}
		var ratios []float64
		for i := range min(r.Rounds, base.Rounds) {
			ratios = append(ratios, r.rounds[i]/base.rounds[i])
		}
		if len(ratios) == 0 {
			continue
		}
		low, middle, high := spread(ratios)
		logs, least, most = logs+math.Log(middle), least+math.Log(low), most+math.Log(high)
		words = append(words, fmt.Sprintf("%s %s %.2f (%.2f–%.2f)", r.Collective, tasks.FormatBytes(r.Bytes), middle, low, high))
	}
	if n := float64(len(words)); n > 0 {
		fmt.Fprintf(w, "# Open MPI by rules / as it is: %s; geometric mean %.2f (%.2f–%.2f)\n",
			strings.Join(words, ", "), math.Exp(logs/n), math.Exp(least/n), math.Exp(most/n))
	}
}
