package methods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	tuning "github.com/tierflow/tierflow/cmd/tierflow/tune"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// validateCommand returns validate.
func validateCommand(reg submodules.Registry) *cobra.Command {
	u := &comparing{tuning.Tuning{Registry: reg}}
	c := &cobra.Command{
		Use:   "validate",
		Short: "Compare predicted with measured times of every configuration",
		Long: `Predicts each configuration for messages of some size (--bytes), of all shapes, from
tasks that it measures by themselves. It measures the configuration too, and prints
both, the fastest first (HAN, figures 4 and 7). Spearman's rank correlation is 1 where
the predictions bring the configurations in the right order. The errors of each shape
are shares of the measured time.`,
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
	f.DurationVar(&u.Budget, "budget", 0, "time for all configurations (default no limit)")
	u.AddSimulateFlag(c)
	f.BoolVar(&u.JSON, "json", false, "print JSON")
	f.StringVar(&u.SVG, "svg", "", "draw predicted and measured times to a file")
	return c
}

// validation is the output of validate for one collective.
type validation struct {
	Collective string            `json:"collective"`
	Bytes      int64             `json:"bytes"`
	Spearman   float64           `json:"spearman"`
	Best       bool              `json:"best"` // the best predicted is a tie with the best measured, or it
	Shapes     []shapeError      `json:"shapes"`
	Rows       []validatedConfig `json:"configurations"`
}

// validatedConfig is one configuration's times: predicted, and measured with an
// interval.
type validatedConfig struct {
	Plan      string  `json:"plan"`
	Predicted float64 `json:"predicted_ns"`
	Measured  float64 `json:"measured_ns"`
	Low       float64 `json:"low_ns"`
	High      float64 `json:"high_ns"`
}

// runValidate compares predictions with measurements on one rank.
func (u *comparing) runValidate(ctx context.Context, r *tuning.Rank) error {
	var all []validation
	book, begin := &costs.Book{}, time.Now()
	for _, request := range u.Requests {
		v, err := u.validateRequest(ctx, r, request, book, begin)
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	if !r.IsFirst() {
		return nil
	}
	var err error
	if u.JSON {
		err = kit.WriteJSON(r.Stdout, map[string]any{"validations": all})
	} else {
		err = printValidations(r, all)
	}
	if err != nil {
		return err
	}
	return u.draw(r, drawValidations(all))
}

// validateRequest predicts and measures the configurations of one request.
func (u *comparing) validateRequest(ctx context.Context, r *tuning.Rank, request tasks.Request, book *costs.Book, begin time.Time) (v validation, err error) {
	v = validation{Collective: request.Coll.String(), Bytes: request.Bytes()}
	t := r.Topology
	for _, p := range u.Space.Plans(request, t) {
		over := u.Budget > 0 && time.Since(begin) > u.Budget && r.IsFirst()
		if end, err := r.IsAny(ctx, over); err != nil || end {
			if err != nil {
				return v, err
			}
			break
		}
		predicted, err := u.predictByTasks(ctx, r, request, p, book)
		if errors.Is(err, submodules.ErrUnsupported) {
			continue
		}
		if err != nil {
			return v, err
		}
		if stop, err := r.IsAny(ctx, r.Asked.Err() != nil); err != nil || stop {
			return v, cmp.Or(err, tune.ErrInterrupted)
		}
		timing, err := r.Meter.Collective(ctx, request, p, u.Stop)
		if err != nil {
			return v, err
		}
		m := tune.NewMeasurement(request, t, p, timing)
		v.Rows = append(v.Rows, validatedConfig{p.String(), predicted.NS, m.NS, m.Low, m.High})
	}
	if len(v.Rows) == 0 {
		return v, fmt.Errorf("%v: no configuration for %s was predicted", request.Coll, tasks.FormatBytes(v.Bytes))
	}
	slices.SortStableFunc(v.Rows, func(a, b validatedConfig) int { return cmp.Compare(a.Measured, b.Measured) })
	predicted, measured := make([]float64, len(v.Rows)), make([]float64, len(v.Rows))
	for i, row := range v.Rows {
		predicted[i], measured[i] = row.Predicted, row.Measured
	}
	v.Spearman, v.Shapes = spearman(predicted, measured), errorsByShape(v.Rows)
	first := slices.MinFunc(v.Rows, func(a, b validatedConfig) int { return cmp.Compare(a.Predicted, b.Predicted) })
	v.Best = first.Low <= v.Rows[0].High
	return v, nil
}

// predictByTasks predicts a plan by its tasks, and measures those that book lacks.
func (u *comparing) predictByTasks(ctx context.Context, r *tuning.Rank, request tasks.Request, p tasks.Plan, book *costs.Book) (costs.Prediction, error) {
	m, err := costs.MakeupOf(request, r.Topology, p)
	if err != nil {
		return costs.Prediction{}, err
	}
	units := m.Singles
	if costs.Segments(request, p) > 1 {
		units = m.Units()
	}
	for _, one := range units {
		if _, known := book.Pipeline(one.Key); known {
			continue
		}
		pipe, err := r.Meter.Task(ctx, request, one.Plan(p), one.Phases, one.Segments(costs.Segments(request, p)), u.Stop)
		if err != nil {
			return costs.Prediction{}, err
		}
		book.AddPipeline(one.Key, pipe)
	}
	return costs.PredictByTasks(request, r.Topology, p, book)
}

// shapeError is how far off the predictions of a shape's configurations are, as shares of
// the measured times.
type shapeError struct {
	Shape string  `json:"shape"`
	Count int     `json:"configurations"`
	Mean  float64 `json:"mean"`
	Worst float64 `json:"worst"` // with its sign
}

// errorsByShape sums up rows by the shapes of their plans.
func errorsByShape(rows []validatedConfig) (all []shapeError) {
	for _, row := range rows {
		shape, _, _ := strings.Cut(strings.TrimPrefix(row.Plan, "shape="), ",")
		at := slices.IndexFunc(all, func(e shapeError) bool { return e.Shape == shape })
		if at < 0 {
			at = len(all)
			all = append(all, shapeError{Shape: shape})
		}
		e, off := &all[at], row.Predicted/row.Measured-1
		e.Count++
		e.Mean += (math.Abs(off) - e.Mean) / float64(e.Count)
		if math.Abs(off) > math.Abs(e.Worst) {
			e.Worst = off
		}
	}
	slices.SortFunc(all, func(a, b shapeError) int { return cmp.Compare(a.Shape, b.Shape) })
	return all
}

// spearman returns the rank correlation of two lists of equal length. It is 1 for less
// than two values, which are always in order.
func spearman(a, b []float64) float64 {
	if len(a) < 2 {
		return 1
	}
	return stat.Correlation(placesOf(a), placesOf(b), nil)
}

// placesOf returns each value's place in the order of values. Equal values share the
// mean of their places.
func placesOf(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	places := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			places[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return places
}

func printValidations(r *tuning.Rank, all []validation) error {
	for _, v := range all {
		fmt.Fprintf(r.Stdout, "# %s of %s: Spearman's rank correlation %.3f over %d configurations; the best predicted is as good as the best measured: %v\n",
			v.Collective, tasks.FormatBytes(v.Bytes), v.Spearman, len(v.Rows), v.Best)
		for _, e := range v.Shapes {
			fmt.Fprintf(r.Stdout, "# %s: %d configurations, error %.1f%% on average, %+.1f%% at worst\n", e.Shape, e.Count, 100*e.Mean, 100*e.Worst)
		}
		w := tabwriter.NewWriter(r.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "predicted µs\tmeasured µs\tratio\t plan")
		for _, row := range v.Rows {
			fmt.Fprintf(w, "%.1f\t%.1f\t%.2f\t %s\n", row.Predicted/1e3, row.Measured/1e3, row.Predicted/row.Measured, row.Plan)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// drawValidations draws figures 4 and 7 of the HAN paper: predicted beside measured times,
// in the order of the latter, one panel for each collective.
func drawValidations(all []validation) viz.Panels {
	figure := viz.Panels{Title: "times of every configuration", Columns: 1}
	for _, v := range all {
		p := viz.Plot{
			Title: v.Collective + " of " + tasks.FormatBytes(v.Bytes), X: "configuration, by measured time", Y: "µs", LogY: true, Style: viz.Lines, First: 1,
			Series: []viz.Series{{Name: "measured"}, {Name: "predicted"}},
		}
		for _, row := range v.Rows {
			p.Series[0].Values = append(p.Series[0].Values, row.Measured/1e3)
			p.Series[1].Values = append(p.Series[1].Values, row.Predicted/1e3)
			p.Series[0].Low, p.Series[0].High = append(p.Series[0].Low, row.Low/1e3), append(p.Series[0].High, row.High/1e3)
		}
		figure.Plots = append(figure.Plots, p)
	}
	return figure
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
