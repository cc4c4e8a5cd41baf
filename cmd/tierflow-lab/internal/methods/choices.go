package methods

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	tuning "github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// modelChoices is table 3 of the paper.
type modelChoices struct {
	Rows  []choiceRow `json:"rows"`
	Model chosenMean  `json:"model"`
	Rule  chosenMean  `json:"rule"`
}

// choiceRow is the choices for one size.
type choiceRow struct {
	Bytes    int64          `json:"bytes"`
	Best     string         `json:"best"` // of the six
	NS       float64        `json:"best_ns"`
	Measured []measuredPlan `json:"measured"` // the six, less those left out
	Model    chosen         `json:"model"`
	Rule     chosen         `json:"rule"`
}

// measuredPlan is an algorithm beside the others.
type measuredPlan struct {
	Algorithm string  `json:"algorithm"`
	NS        float64 `json:"ns"`
	Low       float64 `json:"low_ns"`
	High      float64 `json:"high_ns"`
	Modelled  float64 `json:"modelled_ns"`
}

// chosen is a choice and how many times as long as the best of the six it takes.
type chosen struct {
	Plan  string  `json:"plan"`
	NS    float64 `json:"ns"`
	Ratio float64 `json:"ratio"`
}

// chosenMean sums up choices.
type chosenMean struct {
	Mean float64 `json:"mean"` // geometric
	Max  float64 `json:"max"`
}

// tooSlow is how many times as long as the best an algorithm may take by its model to be
// measured. Models are off by a tenth where it matters, so none of those left out can be best.
const tooSlow = 3

// compareModels measures all algorithms with every size, in turns with what the built-in
// rule chooses.
func (u *modelling) compareModels(ctx context.Context, r *tuning.Rank, p *derived.Parameters) (*modelChoices, error) {
	all := &modelChoices{}
	bar := kit.NewProgress(r.Stderr, "choices", "")
	defer bar.Finish()
	for i, bytes := range u.bytes {
		bar.Show(int64(i), int64(len(u.bytes)))
		row, err := u.compareSize(ctx, r, p, bytes)
		if err != nil {
			return nil, err
		}
		all.Rows = append(all.Rows, row)
	}
	bar.Finish()
	all.Model = meanOf(all.Rows, func(r *choiceRow) chosen { return r.Model })
	all.Rule = meanOf(all.Rows, func(r *choiceRow) chosen { return r.Rule })
	return all, nil
}

// compareSize is compareModels with one size.
func (u *modelling) compareSize(ctx context.Context, r *tuning.Rank, p *derived.Parameters, bytes int64) (row choiceRow, err error) {
	t := u.Job.Topology()
	request := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: bytes}
	priced := p.Rank(t.Size(), bytes, modelSegment)
	choice := priced[0].Algorithm
	plans, names := map[string]tasks.Plan{}, map[string]string{}
	add := func(q tasks.Plan) string {
		q = table.Canonical(q, bytes)
		plans[q.String()] = q
		return q.String()
	}
	for _, one := range priced {
		if m, _ := derived.Bcast(one.Algorithm); one.NS <= tooSlow*priced[0].NS {
			names[m.Algorithm] = add(m.Plan(t, modelSegment))
		}
	}
	rule := add(tune.Space{Registry: u.Registry}.Rule(request, t))
	measured, err := inTurns(ctx, r, request, plans, stats.Stop{Budget: u.Time / confrontRounds, Least: 2})
	if err != nil {
		return row, err
	}
	row = choiceRow{Bytes: bytes, NS: math.Inf(1)}
	for _, m := range priced {
		one, ok := measured[names[m.Algorithm]]
		if !ok {
			continue
		}
		row.Measured = append(row.Measured, measuredPlan{m.Algorithm, one.NS, one.Low, one.High, m.NS})
		if one.NS < row.NS {
			row.Best, row.NS = m.Algorithm, one.NS
		}
	}
	of := func(name, plan string) chosen {
		ns := measured[plan].NS
		return chosen{name, ns, ns / row.NS}
	}
	row.Model, row.Rule = of(choice, names[choice]), of(rule, rule)
	return row, nil
}

// meanOf sums up the choices of all sizes.
func meanOf(rows []choiceRow, of func(r *choiceRow) chosen) (m chosenMean) {
	var ratios []float64
	for i := range rows {
		ratios = append(ratios, of(&rows[i]).Ratio)
		m.Max = max(m.Max, ratios[i])
	}
	m.Mean = labkit.GeometricMean(ratios)
	return m
}

// print prints the rows as the paper does: in parentheses the percent by which a choice is
// slower than the best of the six; less than none if it is none of them, and faster.
func (c *modelChoices) print(w io.Writer) {
	fmt.Fprintln(w, "\nbytes\tbest\tµs\tmodels (%)\tbuilt-in rule (%)\t")
	text := func(c chosen) string { return fmt.Sprintf("%s (%.0f)", c.Plan, 100*(c.Ratio-1)) }
	for i := range c.Rows {
		r := &c.Rows[i]
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%s\t%s\t\n", tasks.FormatBytes(r.Bytes), r.Best, r.NS/1e3, text(r.Model), text(r.Rule))
	}
	mean := func(m chosenMean) string { return fmt.Sprintf("%.3f, at most %.3f", m.Mean, m.Max) }
	fmt.Fprintf(w, "mean of ratios\t\t\t%s\t%s\t\n", mean(c.Model), mean(c.Rule))
}
