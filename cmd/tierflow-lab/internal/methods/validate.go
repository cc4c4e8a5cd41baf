package methods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	tuning "github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// validateCommand returns validate.
func validateCommand(reg submodules.Registry) *cobra.Command {
	u := &comparing{Tuning: tuning.Tuning{Registry: reg}}
	c := &cobra.Command{
		Use:   "validate",
		Short: "Compare predicted with measured times of every configuration",
		Long: `Predicts each configuration for messages of some size (--bytes), of all shapes, from
its stages: what the first segment takes, and what each further one adds while the
tasks of all levels keep each other company (HAN, equations 3 and 4). A row of ten or
more segments shows that, and serves messages of all sizes. Beside it stands what
follows from tasks that are measured each alone, and are taken to overlap in full. It
measures the configuration too, and prints all three, the fastest first (HAN, figures 4
and 7). A message of one segment has no stages: there both are the tasks one after the
other.

Spearman's rank correlation is 1 where the predictions bring the configurations in the
right order. Errors are shares of the measured time.`,
		Example: `  tierflow-lab validate --ops bcast --bytes 4MiB --topo 4x2
  tierflow-lab validate --ops bcast,allreduce --topo 2x2 --shapes han --svg validate.svg`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			return u.RunAnywhere(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), u.runValidate)
		}),
	}
	u.AddFlags(c)
	f := c.Flags()
	f.StringVar(&u.Bytes, "bytes", "4MiB", "sizes of a rank's buffer")
	u.AddSimulateFlag(c)
	f.BoolVar(&u.JSON, "json", false, "print JSON")
	f.StringVar(&u.SVG, "svg", "", "draw predicted and measured times to a file")
	return c
}

// validation is the output of validate for one collective.
type validation struct {
	Collective string `json:"collective"`
	Bytes      int64  `json:"bytes"`
	accuracy
	Best   bool              `json:"best"`  // the best predicted is a tie with the best measured, or it
	Alone  accuracy          `json:"alone"` // of predictions by tasks alone
	Shapes []shapeError      `json:"shapes"`
	Rows   []validatedConfig `json:"configurations"`
}

// accuracy is how well predictions of some configurations do.
type accuracy struct {
	Spearman float64 `json:"spearman"`
	Mean     float64 `json:"mean"`  // error, as a share of the measured time
	Worst    float64 `json:"worst"` // with its sign
}

// validatedConfig is one configuration's times: predicted, and measured with an
// interval.
type validatedConfig struct {
	Plan      string  `json:"plan"`
	Predicted float64 `json:"predicted_ns"`
	Alone     float64 `json:"alone_ns"` // predicted by tasks alone
	Measured  float64 `json:"measured_ns"`
	Low       float64 `json:"low_ns"`
	High      float64 `json:"high_ns"`
}

// accuracyOf says how well one of the predictions of some rows does.
func accuracyOf(rows []validatedConfig, predicted func(*validatedConfig) float64) (a accuracy) {
	forecasts, measured := make([]float64, len(rows)), make([]float64, len(rows))
	for i := range rows {
		forecasts[i], measured[i] = predicted(&rows[i]), rows[i].Measured
		off := forecasts[i]/measured[i] - 1
		a.Mean += math.Abs(off) / float64(len(rows))
		if math.Abs(off) > math.Abs(a.Worst) {
			a.Worst = off
		}
	}
	a.Spearman = labkit.RankCorrelation(forecasts, measured, 1)
	return a
}

// String says it in words.
func (a *accuracy) String() string {
	return fmt.Sprintf("Spearman's rank correlation %.3f, error %.1f%% on average, %+.1f%% at worst", a.Spearman, 100*a.Mean, 100*a.Worst)
}

func byStages(row *validatedConfig) float64 { return row.Predicted }

func byTasks(row *validatedConfig) float64 { return row.Alone }

// runValidate compares predictions with measurements on one rank.
func (u *comparing) runValidate(ctx context.Context, r *tuning.Rank) error {
	var all []validation
	var books [2]costs.Book
	for _, request := range u.Requests {
		v, err := u.validateRequest(ctx, r, request, &books)
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	if !r.IsFirst() {
		return nil
	}
	results := map[string]any{"validations": all}
	if err := labkit.Print(r.Stdout, u.JSON, results, labkit.Right, func(w io.Writer) { printValidations(w, all) }); err != nil {
		return err
	}
	return labkit.Draw(r.Stdout, u.SVG, drawValidations(all))
}

// validateRequest predicts and measures the configurations of one request. The first book has tasks
// alone, the second one those of all levels together.
func (u *comparing) validateRequest(ctx context.Context, r *tuning.Rank, request tasks.Request, books *[2]costs.Book) (v validation, err error) {
	v = validation{Collective: request.Coll.String(), Bytes: request.Bytes()}
	t := r.Topology
	for _, p := range u.Space.Plans(request, t) {
		alone, err := u.predictByTasks(ctx, r, request, p, &books[0], false)
		if errors.Is(err, submodules.ErrUnsupported) {
			continue
		}
		predicted := alone
		if err == nil && predicted.Segments > 1 {
			predicted, err = u.predictByTasks(ctx, r, request, p, &books[1], true)
		}
		if err != nil {
			return v, err
		}
		if stop, err := wantsEnd(ctx, r); err != nil || stop {
			return v, cmp.Or(err, tune.ErrInterrupted)
		}
		timing, err := r.Meter.Collective(ctx, request, p, u.Stop)
		if err != nil {
			return v, err
		}
		m := tune.NewMeasurement(request, t, p, timing)
		v.Rows = append(v.Rows, validatedConfig{p.String(), predicted.NS, alone.NS, m.NS, m.Low, m.High})
	}
	if len(v.Rows) == 0 {
		return v, fmt.Errorf("%v: no configuration for %s was predicted", request.Coll, tasks.FormatBytes(v.Bytes))
	}
	slices.SortStableFunc(v.Rows, func(a, b validatedConfig) int { return cmp.Compare(a.Measured, b.Measured) })
	v.accuracy, v.Alone, v.Shapes = accuracyOf(v.Rows, byStages), accuracyOf(v.Rows, byTasks), errorsByShape(v.Rows)
	first := slices.MinFunc(v.Rows, func(a, b validatedConfig) int { return cmp.Compare(a.Predicted, b.Predicted) })
	v.Best = first.Low <= v.Rows[0].High
	return v, nil
}

// predictByTasks predicts a plan by its tasks, alone or together, and measures those that book lacks.
func (u *comparing) predictByTasks(ctx context.Context, r *tuning.Rank, request tasks.Request, p tasks.Plan, book *costs.Book, isTogether bool) (costs.Prediction, error) {
	m, err := costs.MakeupOf(request, r.Topology, p)
	if err != nil {
		return costs.Prediction{}, err
	}
	units := m.Singles
	if costs.Segments(request, p) > 1 {
		if units = m.Units(); isTogether {
			units = []costs.Unit{m.One, m.Many}
		}
	}
	for _, one := range units {
		if _, known := book.Pipeline(one.Key); known {
			continue
		}
		pipe, err := r.Meter.Task(ctx, request, one.Plan(p), one.Phases, one.Segments(0), u.Stop)
		if err != nil {
			return costs.Prediction{}, err
		}
		book.AddPipeline(one.Key, pipe)
	}
	return costs.PredictByTasks(request, r.Topology, p, book)
}

// shapeError is the accuracy of a shape's configurations.
type shapeError struct {
	Shape string `json:"shape"`
	Count int    `json:"configurations"`
	accuracy
}

// errorsByShape sums up rows by the shapes of their plans.
func errorsByShape(rows []validatedConfig) (all []shapeError) {
	byShape := map[string][]validatedConfig{}
	for _, row := range rows {
		shape, _, _ := strings.Cut(strings.TrimPrefix(row.Plan, "shape="), ",")
		byShape[shape] = append(byShape[shape], row)
	}
	for _, shape := range sortedNames(byShape) {
		all = append(all, shapeError{shape, len(byShape[shape]), accuracyOf(byShape[shape], byStages)})
	}
	return all
}

// summarize returns the accuracy over several requests: the mean error of all configurations, the worst
// one, and the least rank correlation.
func summarize(all []validation, of func(*validation) *accuracy) (sum accuracy) {
	sum.Spearman = 1
	count := 0
	for i := range all {
		a, n := of(&all[i]), len(all[i].Rows)
		sum.Spearman = min(sum.Spearman, a.Spearman)
		sum.Mean += a.Mean * float64(n)
		count += n
		if math.Abs(a.Worst) > math.Abs(sum.Worst) {
			sum.Worst = a.Worst
		}
	}
	sum.Mean /= float64(max(count, 1))
	return sum
}

// printValidations writes the accuracy of all predictions, then by request each configuration.
func printValidations(w io.Writer, all []validation) {
	stages := summarize(all, func(v *validation) *accuracy { return &v.accuracy })
	alone := summarize(all, func(v *validation) *accuracy { return &v.Alone })
	fmt.Fprintf(w, "# all by stages: the least %v\n# all by tasks alone: the least %v\n", &stages, &alone)
	for _, v := range all {
		fmt.Fprintf(w, "# %s of %s: %d configurations; the best predicted is as good as the best measured: %v\n# by stages: %v\n# by tasks alone: %v\n",
			v.Collective, tasks.FormatBytes(v.Bytes), len(v.Rows), v.Best, &v.accuracy, &v.Alone)
		for i := range v.Shapes {
			fmt.Fprintf(w, "# %s: %d configurations, %v\n", v.Shapes[i].Shape, v.Shapes[i].Count, &v.Shapes[i].accuracy)
		}
		fmt.Fprintln(w, "predicted µs\talone µs\tmeasured µs\tratio\t plan")
		for _, row := range v.Rows {
			fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t%.2f\t %s\n", row.Predicted/1e3, row.Alone/1e3, row.Measured/1e3, row.Predicted/row.Measured, row.Plan)
		}
	}
}

// drawValidations draws figures 4 and 7 of the HAN paper: predicted beside measured times,
// in the order of the latter, one panel for each collective.
func drawValidations(all []validation) charts.Panels {
	figure := charts.Panels{Title: "times of every configuration", Columns: 1}
	for _, v := range all {
		p := charts.Plot{
			Title: v.Collective + " of " + tasks.FormatBytes(v.Bytes), X: "configuration, by measured time", Y: "µs", LogY: true, Style: charts.Lines, First: 1,
			Series: []charts.Series{{Name: "measured"}, {Name: "predicted by stages"}, {Name: "by tasks alone"}},
		}
		for _, row := range v.Rows {
			p.Series[0].Values = append(p.Series[0].Values, row.Measured/1e3)
			p.Series[1].Values = append(p.Series[1].Values, row.Predicted/1e3)
			p.Series[2].Values = append(p.Series[2].Values, row.Alone/1e3)
			p.Series[0].Low, p.Series[0].High = append(p.Series[0].Low, row.Low/1e3), append(p.Series[0].High, row.High/1e3)
		}
		figure.Plots = append(figure.Plots, p)
	}
	return figure
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
