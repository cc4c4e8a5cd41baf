package learn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// readSets reads recorded sets: a file of one, or a decision table with its measurements.
func readSets(name string) ([]*recordedSet, error) {
	data, err := files.Read(name, table.MaxBytes)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(data[:min(len(data), 200)]), `"tierflow_table"`) {
		s, err := parseSet(name, data)
		return []*recordedSet{s}, err
	}
	t, err := table.Parse(name, data, all.Submodules())
	if err != nil {
		return nil, err
	}
	var sets []*recordedSet
	for _, coll := range tasks.Requestable() {
		if s := setOf(t, coll.String()); len(s.Points) > 0 {
			if err := s.check(name + ": " + s.Collective); err != nil {
				return nil, err
			}
			sets = append(sets, s)
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s: no measurements; allowed are tables with some, such as tierflow-lab peers --record and tierflow tune write", name)
	}
	return sets, nil
}

// setOf makes a set of a table's measurements of a collective. A point is an entry.
func setOf(t *table.Table, coll string) *recordedSet {
	s := &recordedSet{Version: setVersion, Collective: coll, On: strings.Join(t.Provenance.Machines, ", "), of: t}
	at := map[string]int{}
	for _, m := range t.Measured {
		if _, known := at[m.Plan]; m.Collective == coll && !known {
			at[m.Plan] = len(s.Plans)
			s.Plans = append(s.Plans, m.Plan)
		}
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Collective != coll {
			continue
		}
		row := setRow{Bytes: e.Bytes, NS: make([]float64, len(s.Plans)), Spent: make([]float64, len(s.Plans)), entry: e}
		row.Nodes, row.PerNode = e.Levels.Machine()
		for _, m := range t.Measured {
			if m.IsOf(e) {
				row.NS[at[m.Plan]], row.Spent[at[m.Plan]] = m.NS, m.Spent
			}
		}
		s.Points = append(s.Points, row)
	}
	return s
}

// learnTable makes a table by method learn. Its measurements come from the sets' table.
func learnTable(ctx context.Context, sets []*recordedSet, seed uint64) (*table.Table, error) {
	whole := sets[0].of
	made := &table.Table{Version: table.Version, Provenance: whole.Provenance}
	made.Provenance.Method = "learn, of a " + whole.Provenance.Method
	made.Provenance.Configurations, made.Provenance.Planned, made.Provenance.Seconds = 0, len(whole.Measured), 0
	for _, s := range sets {
		prices, err := s.prices(machine.Assumed())
		if err != nil {
			return nil, err
		}
		c := learningWay{}
		c.Options.Seed = seed
		r := s.newReplayed(c, prices)
		every, _ := s.everything()
		steps := r.replay(ctx, every, nil)
		r.learner.Train()
		made.Provenance.Configurations += len(steps)
		made.Provenance.Seconds += steps[len(steps)-1].Seconds
		r.write(made)
	}
	made.Sort()
	return made, ctx.Err()
}

// write adds the entries, with measured plans and the chosen one, and their measurements.
func (r *replayed) write(made *table.Table) {
	for row := range r.set.Points {
		e := *r.set.Points[row].entry
		e.Candidates = nil
		best := r.learner.Best(row)
		for k, text := range r.set.Plans {
			i, there := r.index[arm{row, k}]
			if !there {
				continue
			}
			c := table.Candidate{Plan: text, Parsed: r.set.parsed[k], NS: r.learner.Known(i), From: table.FromMeasured}
			if c.NS == 0 && i == best {
				c.NS, c.From = r.learner.Predict(i), table.FromPredicted
			}
			if c.NS > 0 {
				e.Candidates = append(e.Candidates, c)
			}
		}
		made.Replace(e)
	}
	for _, m := range r.set.of.Measured {
		k := slices.Index(r.set.Plans, m.Plan)
		for row := range r.set.Points {
			if m.IsOf(r.set.Points[row].entry) {
				if i, there := r.index[arm{row, k}]; there && r.learner.Known(i) > 0 {
					made.Measured = append(made.Measured, m)
				}
			}
		}
	}
}
