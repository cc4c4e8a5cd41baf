package methods

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/stat"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	tuning "github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// comparing is the commands compare and validate, with the flags of a search.
type comparing struct {
	tuning.Tuning
	methods  []string
	contests []contest
}

// compareCommand returns compare.
func compareCommand(reg submodules.Registry) *cobra.Command {
	u := &comparing{Tuning: tuning.Tuning{Registry: reg}}
	c := &cobra.Command{
		Use:   "compare",
		Short: "Compare the methods of tuning: how long they take and how well they choose",
		Long: `Tunes with all methods that search, on the same links and with the same rule to end a
measurement, then measures what they chose in turns, and says how much slower it is
than what exhaustive search chose (HAN, figures 8 and 9). Where intervals overlap it
is a tie, and the slowdown is 1. Methods called predicted run no whole collective. Beside the methods stands what the built-in rule
chooses without any measurement. --budget is for each method: where it cuts a search
short, the planned measurements say by how much. --methods names some, the first of which
is exhaustive, and may give one a budget of its own.

Of a simulated machine (--simulate) the seconds are simulated: seven samples of each
measurement.

best, median and mean are those of all configurations that exhaustive search measured
with a size: what there is to gain by tuning.`,
		Example: `  tierflow-lab compare --topo 2x2 --ops bcast,allreduce --budget 1m
  tierflow-lab compare --topo 4x2 --ops bcast --max 1MiB --json --svg compare.svg
  tierflow-lab compare --topo 4x2 --ops bcast --max 1MiB --methods exhaustive,learn=30s`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) (err error) {
			if u.contests, err = parseContests(u.methods, u.Budget); err != nil {
				return err
			}
			return u.RunAnywhere(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), u.runCompare)
		}),
	}
	u.AddFlags(c)
	u.AddSizeFlags(c, "1KiB", "4MiB")
	f := c.Flags()
	u.AddSimulateFlag(c)
	f.DurationVar(&u.Budget, "budget", 0, "time for each method's search (default no limit)")
	f.StringSliceVar(&u.methods, "methods", nil, "methods to compare, such as exhaustive,learn=30s: names, and times for the search; allowed are "+strings.Join(contestNames(), "; ")+" (default all but learn)")
	f.BoolVar(&u.JSON, "json", false, "print JSON")
	f.StringVar(&u.SVG, "svg", "", "draw the comparison to a file")
	return c
}

// runCompare compares the methods on one rank.
func (u *comparing) runCompare(ctx context.Context, r *tuning.Rank) error {
	all := comparison{Topology: r.Topology.String(), Links: u.Job.Links(), Regime: u.Regime, Stop: tuning.StopText(u.Stop.WithDefaults())}
	tables, err := u.compareMethods(ctx, r, &all)
	if err != nil {
		return err
	}
	all.Methods = append(all.Methods, comparedMethod{Method: "rule", Choices: []comparedChoice{}})
	bar := kit.NewProgress(r.Stderr, "choices", "")
	defer bar.Finish()
	for i, request := range u.Requests {
		over, err := wantsEnd(ctx, r)
		if err != nil {
			return err
		}
		if all.Interrupted = all.Interrupted || over; all.Interrupted {
			break
		}
		bar.Show(int64(i), int64(len(u.Requests)))
		if err := u.measureChoices(ctx, r, request, tables, &all); err != nil {
			return err
		}
	}
	bar.Finish()
	all.fillMeans()
	if !r.IsFirst() {
		return nil
	}
	err = labkit.Print(r.Stdout, u.JSON, all, labkit.Right, all.print)
	if err == nil && len(all.Points) > 0 {
		err = labkit.Draw(r.Stdout, u.SVG, all.figures())
	}
	if err == nil && all.Interrupted {
		err = fmt.Errorf("interrupted: of %d points %d are compared", len(u.Requests), len(all.Points))
	}
	return err
}

// contest is a method to compare.
type contest struct {
	method *tune.Method
	when   tune.RaceWhen
	budget time.Duration // 0: no limit
}

func (c contest) name() string { return tuning.ContestName(c.method, c.when) }

// contests are what can be compared: each method, and each that may run races without any.
var contests = []contest{
	{method: tune.Exhaustive, when: tune.RacesAuto},
	{method: tune.ExhaustivePruned, when: tune.RacesAuto},
	{method: tune.Tasks, when: tune.RacesAuto},
	{method: tune.Tasks, when: tune.RacesNever},
	{method: tune.TasksPruned, when: tune.RacesAuto},
	{method: tune.TasksPruned, when: tune.RacesNever},
	{method: tune.Learn, when: tune.RacesAuto},
}

func contestNames() []string { return kit.Words(contests, contest.name) }

// parseContests returns the contests of names, which may have budgets after =. Without names it is
// all but the one that learns, each with the same budget.
func parseContests(names []string, budget time.Duration) (all []contest, err error) {
	if len(names) == 0 {
		names = contestNames()[:len(contests)-1]
	}
	for _, word := range names {
		name, text, has := strings.Cut(word, "=")
		i := slices.Index(contestNames(), name)
		if i < 0 {
			return nil, kit.Usagef("--methods %s: allowed are %s", word, strings.Join(contestNames(), "; "))
		}
		one := contests[i]
		if one.budget = budget; has {
			if one.budget, err = time.ParseDuration(text); err != nil || one.budget <= 0 {
				return nil, kit.Usagef("--methods %s: %q; allowed are times above 0, such as 30s", word, text)
			}
		}
		all = append(all, one)
	}
	if all[0].method != tune.Exhaustive {
		return nil, kit.Usagef("--methods %s: the first is %s, with whose choices others are compared", strings.Join(names, ","), tune.Exhaustive)
	}
	return all, nil
}

// compareMethods tunes with one method after the other, until the user wants an end.
func (u *comparing) compareMethods(ctx context.Context, r *tuning.Rank, all *comparison) (tables []*table.Table, err error) {
	for _, c := range u.contests {
		count := &tune.Search{Topology: r.Topology, Links: u.LinksOf(r), Requests: u.Requests, Space: u.SpaceOn(r), Method: c.method, Races: c.when, Stop: u.Stop}
		count.Interrupted = func(ctx context.Context) (bool, error) { return wantsEnd(ctx, r) }
		_, configurations, err := count.Planned(ctx)
		if errors.Is(err, tune.ErrInterrupted) {
			all.Interrupted = true
			return tables, nil
		}
		if err != nil {
			return nil, err
		}
		begin, simulated := time.Now(), r.SimulatedTime()
		alone := u.Tuning // other ranks may still be in the contest before
		alone.Budget = c.budget
		t, err := alone.RunSearch(ctx, r, c.method, c.when, nil, nil)
		if err != nil && !errors.Is(err, tune.ErrInterrupted) {
			return nil, err
		}
		p := t.Provenance
		tables = append(tables, t)
		all.Methods = append(all.Methods, comparedMethod{
			Method: c.name(), Configurations: configurations, Measurements: p.Configurations, Planned: p.Planned,
			Rejected: p.Rejected, TuningS: r.Seconds(begin, simulated), Spent: r.Spent.All, Reuse: r.Reuse, Choices: []comparedChoice{},
		})
		if all.Interrupted, err = wantsEnd(ctx, r); all.Interrupted || err != nil {
			return tables, err
		}
	}
	return tables, nil
}

// wantsEnd reports on all ranks whether the user of one of them wants an end.
func wantsEnd(ctx context.Context, r *tuning.Rank) (bool, error) {
	return r.IsAny(ctx, r.Asked.Err() != nil)
}

// measureChoices measures the methods' choices for one point in turns.
func (u *comparing) measureChoices(ctx context.Context, r *tuning.Rank, request tasks.Request, tables []*table.Table, all *comparison) error {
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
	rule := u.Space.Rule(request, r.Topology)
	plans[rule.String()] = rule
	choices = append(choices, table.Candidate{Plan: rule.String()})
	again, err := inTurns(ctx, r, request, plans, stats.Stop{Budget: u.Time, Rel: u.Stop.Rel})
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
func inTurns(ctx context.Context, r *tuning.Rank, request tasks.Request, plans map[string]tasks.Plan, stop stats.Stop) (map[string]table.Measurement, error) {
	rounds := confrontRounds
	if r.Comm == nil {
		rounds = 1
	}
	all, series := map[string]table.Measurement{}, map[string][]float64{}
	for range rounds {
		for _, text := range sortedNames(plans) {
			timing, err := r.Meter.Collective(ctx, request, plans[text], stop)
			if err != nil {
				return nil, err
			}
			series[text] = append(series[text], timing.Series...)
			timing.Series = series[text]
			all[text] = tune.NewMeasurement(request, r.Topology, plans[text], timing)
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
