package methods

import (
	"math"
	"strings"
	"testing"

	tuning "github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
)

// compared is two methods and the rule, of which the second method lacks a point.
func compared() *comparison {
	choice := func(bytes int64, plan string, ns, slowdown float64) comparedChoice {
		return comparedChoice{Collective: "bcast", Bytes: bytes, Plan: plan, NS: ns, Slowdown: slowdown, Tie: slowdown == 1}
	}
	all := &comparison{
		Topology: "2x2", Links: "assumed", Stop: "never",
		Methods: []comparedMethod{
			{
				Method: "exhaustive", Configurations: 8, Measurements: 8, Planned: 8, TuningS: 2,
				Spent: []tuning.Spent{{Kind: "collectives", Measurements: 8}}, Choices: []comparedChoice{choice(8, "fast", 100, 1), choice(64, "long", 200, 1)},
			},
			{Method: "tasks", Configurations: 8, Measurements: 2, Planned: 4, TuningS: 0.5, Choices: []comparedChoice{choice(8, "slow", 400, 4)}},
			{Method: "rule", Choices: []comparedChoice{choice(8, "fast", 100, 1), choice(64, "rule", 800, 4)}},
		},
		Points: []comparedPoint{{"bcast", 8, 4, 100, 150, 200}, {"bcast", 64, 4, 200, 300, 400}},
	}
	all.Methods[1].Choices[0].Expected = 100
	all.Methods[0].Choices[1].Expected = 220
	return all
}

// Means are of the points that a method has. Lines of points have the slowdowns of all methods, and the
// plan of the first one.
func TestComparisonText(t *testing.T) {
	c := compared()
	c.fillMeans()
	for i, want := range []struct{ mean, most float64 }{{1, 1}, {4, 4}, {2, 4}} {
		if m := c.Methods[i]; math.Abs(m.MeanSlowdown-want.mean) > 1e-9 || m.MaxSlowdown != want.most {
			t.Errorf("%s: mean %v, most %v, want %+v", m.Method, m.MeanSlowdown, m.MaxSlowdown, want)
		}
	}
	var text strings.Builder
	if err := labkit.Print(&text, false, c, labkit.Right, c.print); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"exhaustive 8 8 8 2.0 1.000 1.000 2/2 1.10–1.10", "tasks 8 2 4 0.5 4.000 4.000 0/1 0.25–0.25", "rule 0 0 0 0.0 2.000 4.000 1/2 -",
		"bcast 8B 1.50 2.00 1.00 4.00 1.00 fast", "bcast 64B 1.50 2.00 1.00 4.00 long",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// The figure has a bar for each method and point; a point that a method lacks is empty.
func TestComparisonFigure(t *testing.T) {
	plots := compared().figures().Plots
	if len(plots) != 2 || len(plots[0].Series) != 3 || len(plots[1].Series) != 5 {
		t.Fatalf("%+v", plots)
	}
	tasks := plots[1].Series[1].Values
	if len(tasks) != 2 || tasks[0] != 0.4 || !math.IsNaN(tasks[1]) {
		t.Errorf("bars of tasks %v, want 0.4 µs and none", tasks)
	}
	if mean := plots[1].Series[4]; mean.Name != "mean of all" || mean.Values[1] != 0.4 {
		t.Errorf("%+v", mean)
	}
}

// A point sums up the measurements of its size alone. Without any it is empty, and no infinity.
func TestNewPoint(t *testing.T) {
	made := &table.Table{}
	for bytes, all := range map[int64][]float64{8: {400, 100, 200}, 64: {1}} {
		for _, ns := range all {
			made.Measured = append(made.Measured, table.Measurement{Collective: "bcast", Bytes: bytes, NS: ns})
		}
	}
	if got, want := newPoint(made, "bcast", 8), (comparedPoint{"bcast", 8, 3, 100, 200, 700.0 / 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := newPoint(made, "reduce", 8), (comparedPoint{Collective: "reduce", Bytes: 8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Without names all contests but the one that learns are parsed, each with the common budget.
func TestDefaultContests(t *testing.T) {
	all, err := parseContests(nil, 7)
	if err != nil || len(all) != len(contests)-1 {
		t.Fatalf("%d contests, %v", len(all), err)
	}
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.name()] || c.budget != 7 || c.name() == "learn" {
			t.Errorf("%s, with a budget of %v", c.name(), c.budget)
		}
		seen[c.name()] = true
	}
}

// Means of choices are geometric, and choices stand with percents over the best.
func TestModelChoices(t *testing.T) {
	row := func(bytes int64, model, rule float64) choiceRow {
		return choiceRow{Bytes: bytes, Best: "binomial", NS: 1000, Model: chosen{"chain", 1000 * model, model}, Rule: chosen{"p", 1000 * rule, rule}}
	}
	c := &modelChoices{Rows: []choiceRow{row(8, 1, 2), row(64, 1.21, 0.5)}}
	c.Model = meanOf(c.Rows, func(r *choiceRow) chosen { return r.Model })
	c.Rule = meanOf(c.Rows, func(r *choiceRow) chosen { return r.Rule })
	if math.Abs(c.Model.Mean-1.1) > 1e-9 || c.Model.Max != 1.21 || math.Abs(c.Rule.Mean-1) > 1e-9 || c.Rule.Max != 2 {
		t.Errorf("models %+v, rule %+v", c.Model, c.Rule)
	}
	var text strings.Builder
	c.print(&text)
	for _, want := range []string{"64B\tbinomial\t1.0\tchain (21)\tp (-50)\t\n", "mean of ratios\t\t\t1.100, at most 1.210\t1.000, at most 2.000\t\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// Predictions that keep the order have a correlation of 1, however far off they are.
func TestAccuracyOf(t *testing.T) {
	rows := []validatedConfig{
		{Plan: "shape=han,fs=all", Predicted: 110, Alone: 300, Measured: 100},
		{Plan: "shape=han,fs=64KiB", Predicted: 180, Alone: 200, Measured: 200},
		{Plan: "shape=flat", Predicted: 300, Alone: 100, Measured: 300},
	}
	stages, alone := accuracyOf(rows, byStages), accuracyOf(rows, byTasks)
	if stages.Spearman != 1 || math.Abs(stages.Mean-0.2/3) > 1e-9 || math.Abs(math.Abs(stages.Worst)-0.1) > 1e-9 {
		t.Errorf("by stages %+v", stages)
	}
	if alone.Spearman != -1 || alone.Worst != 2 {
		t.Errorf("by tasks %+v", alone)
	}
	shapes := errorsByShape(rows)
	if len(shapes) != 2 || shapes[0].Shape != "flat" || shapes[0].Count != 1 || shapes[0].Mean != 0 || shapes[1].Shape != "han" || shapes[1].Count != 2 {
		t.Errorf("by shapes %+v", shapes)
	}
	all := []validation{
		{Collective: "bcast", Bytes: 8, Rows: rows, accuracy: stages, Alone: alone, Shapes: shapes},
		{Collective: "reduce", Bytes: 8, Rows: rows[:1], accuracy: accuracy{Spearman: 0.5, Mean: 0.4, Worst: -0.4}},
	}
	sum := summarize(all, func(v *validation) *accuracy { return &v.accuracy })
	if sum.Spearman != 0.5 || sum.Worst != -0.4 || math.Abs(sum.Mean-(0.2+0.4)/4) > 1e-9 {
		t.Errorf("summary %+v", sum)
	}
	var text strings.Builder
	printValidations(&text, all)
	for _, want := range []string{"# bcast of 8B: 3 configurations", "# han: 2 configurations", "0.1\t0.3\t0.1\t1.10\t shape=han,fs=all\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if plots := drawValidations(all).Plots; len(plots) != 2 || len(plots[0].Series) != 3 || plots[0].Series[2].Values[0] != 0.3 {
		t.Errorf("drawn %+v", plots)
	}
}

// The regime and the end of a measurement are in the header.
func TestComparisonHeader(t *testing.T) {
	c := &comparison{Topology: "4x1", Links: "i=1gbit", Regime: costs.Single, Stop: "after 1 s"}
	var text strings.Builder
	c.Methods = make([]comparedMethod, 1)
	c.print(&text)
	if want := "# 4x1; i=1gbit; calls single\n# ends: after 1 s\n"; !strings.HasPrefix(text.String(), want) {
		t.Errorf("%s, want %q first", &text, want)
	}
}
