package peers

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/distill"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/rules/foreign"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// byRules is the variant of a library with rules made of its sweep.
const byRules = "rules by tierflow"

// record is a decision table of the times of another library's algorithms. Each stands there as the
// plan of the same schedule. The table is for that library, not for tierflow.
type record struct {
	table.Table
	library string
	on      *levels.Topology
	links   string
}

// newRecord returns an empty record of a library.
func newRecord(library, topo string, t *peerTable) (*record, error) {
	on, err := levels.Parse(topo)
	if err != nil {
		return nil, err
	}
	r := &record{library: library, on: on, links: t.Rate}
	r.Version = table.Version
	r.Provenance = table.Provenance{
		Method: "sweep of " + library + "'s algorithms", Date: t.Date, Tierflow: t.Versions[ourselves], CPUs: t.CPUs, Kernel: t.Kernel,
		Machines: []string{topo}, Links: t.Rate, CongestionControl: t.Congestion, Types: tasks.Float32.String() + " " + tasks.Sum.String(),
	}
	return r, nil
}

// planOf returns the plan for a word such as ompi=6/65536 or mpich=ring; empty: there is none.
func planOf(op, word string) string {
	text, err := rules.ExpandWords(op + ":" + word)
	if err != nil {
		return "" // no counterpart, or different blocks
	}
	_, plan, _ := strings.Cut(text, ":")
	return plan
}

// add adds the time of a setting, if it has a plan. Of Open MPI the least time counts: its ranks yield,
// and other programs only make calls longer. MPICH's ranks spin, and their sharing of processors is
// part of a call's time: of it the median counts.
func (r *record) add(s setting, row peerRow) error {
	coll, err := tasks.ParseCollective(row.Collective)
	if err != nil || s.plan == "" {
		return err
	}
	parsed, err := tasks.ParsePlan(s.plan)
	if err != nil {
		return err
	}
	ns := row.Min * 1e3
	if r.library == mpich {
		ns = row.P50 * 1e3
	}
	e := table.PointOf(labkit.Request(coll, row.Bytes), r.on, r.links)
	for i := range r.Entries {
		if r.Entries[i].Key() == e.Key() {
			e.Candidates = r.Entries[i].Candidates
		}
	}
	e.Candidates = append(e.Candidates, table.Candidate{Plan: parsed.String(), NS: ns, From: table.FromMeasured, Parsed: parsed})
	r.Replace(e)
	r.Measured = append(r.Measured, table.Measurement{
		Collective: e.Collective, Levels: e.Levels, Place: e.Place, Bytes: e.Bytes, Plan: parsed.String(),
		NS: ns, Low: ns, High: ns, Samples: row.Iters, Spent: row.Mean * 1e3 * float64(row.Iters),
	})
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

// makeRules makes rules of a table, writes them as a file for a library, and returns the setting with
// them. The first rules, given as text, may leave cells to the library.
func (s site) makeRules(library string, t *table.Table, first string, notes io.Writer) (of setting, err error) {
	of = setting{library: library, variant: byRules}
	made, err := distill.Rules(t, distill.Bounds{})
	if err != nil {
		return of, err
	}
	made.Text = first + made.Text
	base, err := rules.Parse("the sweep", made.Text)
	if err != nil {
		return of, err
	}
	layout := foreign.Layout{PerNode: int64(s.perNode)}
	var text string
	var lost []foreign.Note
	name := filepath.Join(s.folder, peer{name: library}.word()+".rules")
	if library == mpich {
		text, lost, err = foreign.WriteMPICH(base, layout, false)
		of.genv = []string{"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", name}
	} else {
		text, lost = foreign.WriteClassic(base, layout, foreign.For4)
		of.mca = append([]string{"coll_tuned_use_dynamic_rules", "1", "coll_tuned_dynamic_rules_filename", name}, yielding[true]...)
		of.variant += ", " + yieldName(true)
	}
	if err != nil {
		return of, err
	}
	for _, n := range lost {
		fmt.Fprintf(notes, "# rules for %s: %v\n", library, n)
	}
	for line := range strings.Lines(made.Text) {
		fmt.Fprintf(notes, "# rules: %s", line)
	}
	return of, os.WriteFile(name, []byte(text), 0o644)
}

// isByRules reports whether a result is of a library by rules.
func isByRules(r *peerResult) bool { return strings.HasPrefix(r.Variant, byRules) }

// noteRules says how long libraries take by rules, by their time as they are.
func (t *peerTable) noteRules(w io.Writer) {
	t.noteRulesOf(w, asItIsOf(openMPI))
	t.noteRulesOf(w, asItIsOf(mpich))
}

// noteRulesOf is noteRules of one library.
func (t *peerTable) noteRulesOf(w io.Writer, usual setting) {
	var least, medians, most []float64
	var words []string
	for _, r := range t.Results {
		base := t.find(usual.library, usual.variant, r.cell())
		if r.Library != usual.library || !isByRules(r) || base == nil {
			continue
		}
		low, middle, high := spread(labkit.Ratios(r.rounds, base.rounds))
		least, medians, most = append(least, low), append(medians, middle), append(most, high)
		words = append(words, fmt.Sprintf("%s %s %.2f (%.2f–%.2f)", r.Collective, tasks.FormatBytes(r.Bytes), middle, low, high))
	}
	if len(words) > 0 {
		fmt.Fprintf(w, "# %s by rules / as it is: %s; geometric mean %.2f (%.2f–%.2f)\n",
			usual.library, strings.Join(words, ", "), labkit.GeometricMean(medians), labkit.GeometricMean(least), labkit.GeometricMean(most))
	}
}
