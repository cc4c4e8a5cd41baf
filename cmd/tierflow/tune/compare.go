package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// compareCommand returns tune compare.
func compareCommand(reg submodules.Registry) *cobra.Command {
	u := &tuning{reg: reg}
	c := &cobra.Command{
		Use:   "compare",
		Short: "Compare the methods of tuning: how long they take and how well they choose",
		Long: `Tunes with all methods that search, on the same links and with the same rule to end a
measurement, then measures what they chose in turns, and says how much slower it is
than what exhaustive search chose (HAN, figures 8 and 9). Where intervals overlap it
is a tie, and the slowdown is 1. Methods called predicted run no whole collective. Beside the methods stands what the built-in rule
chooses without any measurement. --budget is for each method: where it cuts a search
short, the planned measurements say by how much.

Of a simulated machine (--simulate) the seconds are simulated: seven samples of each
measurement.

best, median and mean are those of all configurations that exhaustive search measured
with a size: what there is to gain by tuning.`,
		Example: `  tierflow tune compare --topo 2x2 --ops bcast,allreduce --budget 1m
  tierflow tune compare --topo 4x2 --ops bcast --max 1MiB --json --svg compare.svg`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			return u.runAnywhere(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), u.runCompare)
		}),
	}
	u.addFlags(c)
	u.addSizeFlags(c, "1KiB", "4MiB")
	f := c.Flags()
	u.addSimulateFlag(c)
	f.DurationVar(&u.budget, "budget", 0, "time for each method's search (default no limit)")
	f.BoolVar(&u.json, "json", false, "print JSON")
	f.StringVar(&u.svg, "svg", "", "draw the comparison to a file")
	return c
}

// runCompare compares the methods on one rank.
func (u *tuning) runCompare(ctx context.Context, r *tuneRank) error {
	all := comparison{Topology: r.topology.String(), Links: u.Job.Links(), Regime: u.regime, Stop: stopText(u.stop.WithDefaults())}
	tables, err := u.compareMethods(ctx, r, &all)
	if err != nil {
		return err
	}
	all.Methods = append(all.Methods, comparedMethod{Method: "rule", Choices: []comparedChoice{}})
	bar := newProgress(r.stderr, "choices")
	for i, request := range u.requests {
		over, err := r.wantsEnd(ctx)
		if err != nil {
			return err
		}
		if all.Interrupted = all.Interrupted || over; all.Interrupted {
			break
		}
		bar.show(i, len(u.requests))
		if err := u.measureChoices(ctx, r, request, tables, &all); err != nil {
			return err
		}
	}
	bar.finish()
	all.fillMeans()
	if !r.isFirst() {
		return nil
	}
	if u.json {
		err = kit.WriteJSON(r.stdout, all)
	} else {
		err = all.print(r)
	}
	if err == nil && len(all.Points) > 0 {
		err = u.draw(r, all.figures())
	}
	if err == nil && all.Interrupted {
		err = fmt.Errorf("interrupted: of %d points %d are compared", len(u.requests), len(all.Points))
	}
	return err
}

// draw writes a figure to the file of --svg, if there is one. It comes after what is
// printed, so that a file that can't be written loses nothing else.
func (u *tuning) draw(r *tuneRank, figure viz.Panels) error {
	if u.svg == "" {
		return nil
	}
	drawing, err := figure.SVG()
	if err != nil {
		return err
	}
	return kit.WriteOutput(r.stdout, u.svg, drawing)
}

// contests are what is compared: each method, and each that may run races without any.
var contests = []struct {
	method *tune.Method
	when   tune.RaceWhen
}{
	{tune.Exhaustive, tune.RacesAuto},
	{tune.ExhaustivePruned, tune.RacesAuto},
	{tune.Tasks, tune.RacesAuto},
	{tune.Tasks, tune.RacesNever},
	{tune.TasksPruned, tune.RacesAuto},
	{tune.TasksPruned, tune.RacesNever},
}

// contestName returns the method's name, with a word if races are not as usual.
func contestName(m *tune.Method, when tune.RaceWhen) string {
	switch when {
	case tune.RacesNever:
		return m.String() + " (predicted)"
	case tune.RacesAlways:
		return m.String() + " (raced)"
	}
	return m.String()
}

// compareMethods tunes with one method after the other, until the user wants an end.
func (u *tuning) compareMethods(ctx context.Context, r *tuneRank, all *comparison) (tables []*table.Table, err error) {
	for _, c := range contests {
		count := &tune.Search{Topology: r.topology, Links: u.linksOf(r), Requests: u.requests, Space: u.spaceOn(r), Method: c.method, Races: c.when, Stop: u.stop}
		_, configurations := count.Planned()
		begin, simulated := time.Now(), r.simulatedTime()
		t, err := u.runSearch(ctx, r, c.method, c.when, nil, nil)
		if err != nil && !errors.Is(err, tune.ErrInterrupted) {
			return nil, err
		}
		p := t.Provenance
		tables = append(tables, t)
		all.Methods = append(all.Methods, comparedMethod{
			Method: contestName(c.method, c.when), Configurations: configurations, Measurements: p.Configurations, Planned: p.Planned,
			Rejected: p.Rejected, TuningS: r.seconds(begin, simulated), Spent: r.spent.all, Reuse: r.reuse, Choices: []comparedChoice{},
		})
		if all.Interrupted, err = r.wantsEnd(ctx); all.Interrupted || err != nil {
			return tables, err
		}
	}
	return tables, nil
}

// wantsEnd reports on all ranks whether the user of one of them wants an end.
func (r *tuneRank) wantsEnd(ctx context.Context) (bool, error) {
	return r.isAny(ctx, r.asked.Err() != nil)
}

// measureChoices measures the methods' choices for one point in turns.
func (u *tuning) measureChoices(ctx context.Context, r *tuneRank, request tasks.Request, tables []*table.Table, all *comparison) error {
	coll, bytes := request.Coll.String(), request.Bytes()
	choices := make([]table.Candidate, len(tables))
	plans := map[string]tasks.Plan{}
	for i, t := range tables {
		for _, e := range t.Entries {
			if e.Collective == coll && e.Bytes == bytes {
				choices[i] = e.Candidates[0]
			}
		}
		if choices[i].Plan == "" {
			continue // the budget left nothing for this point
		}
		p, err := tasks.ParsePlan(choices[i].Plan)
		if err != nil {
			return err
		}
		plans[choices[i].Plan] = p
	}
	rule := u.space.Rule(request, r.topology)
	plans[rule.String()] = rule
	choices = append(choices, table.Candidate{Plan: rule.String()})
	again, err := r.inTurns(ctx, request, plans, stats.Stop{Budget: u.time, Rel: u.stop.Rel})
	if err != nil {
		return err
	}
	all.Points = append(all.Points, newPoint(tables[0], coll, bytes))
	best, known := again[choices[0].Plan]
	for i, c := range choices {
		m, ok := again[c.Plan]
		if !ok {
			continue
		}
		one := comparedChoice{Collective: coll, Bytes: bytes, Plan: c.Plan, NS: m.NS, Low: m.Low, High: m.High, Expected: c.NS, Slowdown: 1}
		one.Tie = !known || m.Low <= best.High && best.Low <= m.High
		if !one.Tie {
			one.Slowdown = m.NS / best.NS
		}
		all.Methods[i].Choices = append(all.Methods[i].Choices, one)
	}
	return nil
}

// confrontRounds is the number of turns of each choice, which share its time.
const confrontRounds = 5

// inTurns measures plans in turns, so that a disturbance of the machine disturbs all.
// Simulated times are the same in every turn.
func (r *tuneRank) inTurns(ctx context.Context, request tasks.Request, plans map[string]tasks.Plan, stop stats.Stop) (map[string]table.Measurement, error) {
	rounds := confrontRounds
	if r.comm == nil {
		rounds = 1
	}
	all, series := map[string]table.Measurement{}, map[string][]float64{}
	for range rounds {
		for _, text := range sortedNames(plans) {
			timing, err := r.meter.Collective(ctx, request, plans[text], stop)
			if err != nil {
				return nil, err
			}
			series[text] = append(series[text], timing.Series...)
			timing.Series = series[text]
			all[text] = tune.NewMeasurement(request, r.topology, plans[text], timing)
		}
	}
	return all, nil
}

// newPoint sums up a table's measurements of a point.
func newPoint(t *table.Table, coll string, bytes int64) comparedPoint {
	p := comparedPoint{Collective: coll, Bytes: bytes, Best: math.Inf(1)}
	var times []float64
	for _, m := range t.Measured {
		if m.Collective == coll && m.Bytes == bytes {
			times = append(times, m.NS)
			p.Best = min(p.Best, m.NS)
		}
	}
	if p.Measured = len(times); p.Measured == 0 {
		p.Best = 0
		return p
	}
	p.Median, p.Mean = costs.Median(times), stat.Mean(times, nil)
	return p
}
