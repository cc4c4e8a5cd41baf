package simulate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/planner/fixed"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// row is a plan and what it takes.
type row struct {
	Plan     string  `json:"plan"`
	NS       float64 `json:"simulated_ns"`
	Ratio    float64 `json:"ratio"` // to the best
	Messages int64   `json:"messages"`
	Busy     float64 `json:"busy"` // share of the time that the busiest wire was busy
	Rule     bool    `json:"rule"` // the built-in rule chooses it
	// Libraries are those that decide so, by their names in package planner/fixed.
	Libraries []string `json:"libraries,omitempty"`
	time      sim.Time
}

// compare simulates a plan of every algorithm, and sorts by time.
func (s *simulation) compare(ctx context.Context) ([]row, error) {
	space := tune.Space{Registry: s.reg}
	ruled := space.Rule(s.request, s.on)
	space.Segments, space.Windows, space.Inners = []int64{ruled.Segment, tasks.Whole}, []int{max(ruled.Window, 8)}, []int64{0, 32 << 10}
	if s.on.Nodes() == s.on.Size() && ruled.Shape == tasks.Han { // then flat is the same
		space.Shapes = slices.DeleteFunc(tasks.ShapesOf(s.request.Coll), tasks.Shape.IsFlat)
	}
	outer := s.on.Level(s.on.Depth() - 1).Symbol
	for _, key := range ruled.Keys() {
		if key[0] != outer {
			c, _ := ruled.Choice(key)
			space.Plan = space.Plan.Set(key, c)
		}
	}
	plans := space.Plans(s.request, s.on)
	theirs := s.decisions()
	for _, p := range append(theirs, decided{"", ruled}) {
		if !slices.ContainsFunc(plans, p.plan.Equal) {
			plans = append(plans, p.plan)
		}
	}
	var rows []row
	for _, p := range plans {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		job, err := sim.Compile(s.request, s.on, p, s.reg)
		if err != nil {
			return nil, kit.UsageError(err)
		}
		r, err := job.Run(s.machine, sim.Options{Seed: s.seed})
		if err != nil {
			return nil, kit.UsageError(err)
		}
		one := row{Plan: p.String(), NS: r.Time.Nanoseconds(), Messages: r.Messages, Rule: p.Equal(ruled), time: r.Time}
		for _, d := range theirs {
			if d.plan.Equal(p) {
				one.Libraries = append(one.Libraries, d.by)
			}
		}
		for _, u := range busiest(r.Links) {
			one.Busy = max(one.Busy, kit.Round(share(u.Busy, r.Time), 1e4))
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return int(max(-1, min(1, a.time-b.time))) })
	for i := range rows {
		rows[i].Ratio = 1
		if best := rows[0].time; best > 0 {
			rows[i].Ratio = kit.Round(float64(rows[i].time)/float64(best), 1e3)
		}
	}
	return rows, nil
}

// decided is the plan of another library.
type decided struct {
	by   string
	plan tasks.Plan
}

// decisions returns the plans of the libraries that have one for the request.
func (s *simulation) decisions() (all []decided) {
	for _, lib := range fixed.Libraries() {
		if d, err := lib.Decide(s.request, s.on); err == nil {
			all = append(all, decided{lib.Name, d.Plan})
		}
	}
	return all
}

// tableText is what is printed of all plans.
func (s *simulation) tableText(rows []row) []byte {
	var b bytes.Buffer
	b.WriteString(s.header())
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "time\tto best\tmessages\tbusiest wire\tplan")
	for _, r := range rows {
		names := r.Libraries
		if r.Rule {
			names = append([]string{"built-in rule"}, names...)
		}
		mark := ""
		if len(names) > 0 {
			mark = "  (" + strings.Join(names, ", ") + ")"
		}
		fmt.Fprintf(w, "%v\t%.2f\t%d\t%.0f%%\t%s%s\n", r.time, r.Ratio, r.Messages, 100*r.Busy, r.Plan, mark)
	}
	w.Flush()
	return b.Bytes()
}
