package simulate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/tasks"
)

// row is a plan and its time.
type row struct {
	Plan     string  `json:"plan"`
	NS       float64 `json:"simulated_ns"`
	Ratio    float64 `json:"ratio"` // to the best
	Messages int64   `json:"messages"`
	Busy     float64 `json:"busy"`   // the busiest wire's share of the time
	Rule     bool    `json:"rule"`   // the built-in rule chooses it
	Chosen   bool    `json:"chosen"` // it would be chosen on this machine
	time     sim.Time
}

// compare simulates the catalogue's plans and the machine's choice, and sorts by time.
func (s *simulation) compare(ctx context.Context, stderr io.Writer) ([]row, error) {
	asked := builtin.Ask(s.request, s.on)
	ruled, _ := asked.Choose(tasks.Plan{})
	chosen, err := s.choice()
	if err != nil {
		return nil, err
	}
	all := plans.All(asked, ruled, s.reg)
	ruled, chosen = plans.Named(asked, ruled, s.reg), plans.Named(asked, chosen, s.reg)
	if !slices.ContainsFunc(all, chosen.Equal) {
		all = append(all, chosen)
	}
	need, err := s.needOfAll(ctx, all)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("simulating %d plans, %d steps on %d ranks", len(all), need.Steps, s.on.Size())
	bar := kit.NewProgress(stderr, "simulating", kit.NeedText(what, need.Bytes))
	defer bar.Finish()
	var rows []row
	var ended int64 // steps of the plans before
	for _, p := range all {
		job, err := s.compilation(ctx, p).Job()
		if err != nil {
			return nil, kit.UsageError(err)
		}
		r, err := job.Run(s.machine, sim.Options{Seed: s.seed, Check: func(steps int64) error {
			bar.Show(ended+steps, need.Steps)
			return ctx.Err()
		}})
		if err != nil {
			return nil, kit.UsageError(err)
		}
		ended += r.Steps
		one := row{Plan: p.String(), NS: r.Time.Nanoseconds(), Messages: r.Messages, Rule: p.Equal(ruled), Chosen: p.Equal(chosen), time: r.Time}
		for _, u := range busiest(r.Links) {
			one.Busy = max(one.Busy, kit.Round(share(u.Busy, r.Time), 1e4))
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.time, b.time) })
	for i := range rows {
		rows[i].Ratio = 1
		if best := rows[0].time; best > 0 {
			rows[i].Ratio = kit.Round(float64(rows[i].time)/float64(best), 1e3)
		}
	}
	return rows, nil
}

// choice returns the plan chosen on the machine.
func (s *simulation) choice() (tasks.Plan, error) {
	free := s.Problem
	free.Plan = ""
	return free.Decide(s.request, s.on)
}

// needOfAll returns the steps of all plans, and the most bytes of one. It complains of a plan too
// large for the memory.
func (s *simulation) needOfAll(ctx context.Context, plans []tasks.Plan) (all sim.Need, err error) {
	for _, p := range plans {
		need, err := kit.CheckSimulation(s.compilation(ctx, p), 1)
		if err != nil {
			return all, err
		}
		all.Steps, all.Bytes = all.Steps+need.Steps, max(all.Bytes, need.Bytes)
	}
	return all, nil
}

// tableText is the printed form of all plans.
func (s *simulation) tableText(rows []row) []byte {
	var b bytes.Buffer
	b.WriteString(s.header())
	w := kit.NewTable(&b)
	fmt.Fprintln(w, "time\tto best\tmessages\tbusiest wire\tplan")
	for _, r := range rows {
		mark := ""
		if r.Chosen {
			mark = "  (chosen)"
		}
		if r.Rule {
			mark += "  (built-in rule)"
		}
		fmt.Fprintf(w, "%v\t%.2f\t%d\t%.0f%%\t%s%s\n", r.time, r.Ratio, r.Messages, 100*r.Busy, r.Plan, mark)
	}
	w.Flush()
	return b.Bytes()
}
