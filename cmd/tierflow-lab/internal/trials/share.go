package trials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchShare is the command share.
type benchShare struct {
	kit.Problem
	reg    submodules.Registry
	file   string // --simulate; empty: nothing is simulated
	json   bool
	stop   stats.Stop
	given  []string       // --plan, as often as it was given
	forced []tasks.Forced // one for each plan, at least one
}

func shareCommand(reg submodules.Registry) *cobra.Command {
	b := &benchShare{reg: reg}
	c := &cobra.Command{
		Use:   "share OP[,OP...]",
		Short: "Measure how much of a collective's time is spent inside nodes",
		Long: `Measures hierarchical collectives, the part of their time that ranks of a node spend
with each other, and how much faster they would be if that took no time. It is found in
two ways. "inside" is what the tasks inside nodes take by themselves, for plans of one
segment, where nothing overlaps. "leaders" is the same plan on one rank of each node,
really run; it holds for plans that cut, too, where time inside nodes hides behind that
between them (table 1 of "MPI collectives in MPICH2", Zhu and others).

"model" is what that paper expects: of trees with messages between two ranks, which are
measured, in one segment; of the time that all bytes take on one link, in several.

With several plans each is measured, and "to first" is what it takes to what the first
one does. What plans leave open is as the built-in rule has it. Each size is measured in
one segment, along binomial trees where the rule has chains, and, if the rule cuts, as
the rule cuts.`,
		Example: `  tierflow-lab share bcast,allreduce --topo 4x2 --bytes 4,256KiB,1MiB
  tierflow-lab share barrier,bcast --topo 16x4 --simulate assumed
  tierflow-lab share bcast --plan s=adapt/binomial --plan s=sm --plan s=solo`,
		Args: kit.Operand("collectives: bcast,allreduce"),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error { return b.run(c, args[0]) }),
	}
	b.AddJobFlags(c)
	b.AddRequestFlags(c, "4,64KiB,1MiB", "sizes of a rank's buffer")
	f := c.Flags()
	f.StringArrayVar(&b.given, "plan", nil, kit.PlanText+"; several are compared with the first one")
	f.DurationVar(&b.stop.Budget, "time", time.Second, "most time for one measurement, beyond five samples")
	f.StringVar(&b.file, "simulate", "", kit.SimulateText)
	f.BoolVar(&b.json, "json", false, "print JSON")
	return c
}

// shareRow is the output for a collective, a size and a plan, ns.
type shareRow struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	Plan       string  `json:"plan"`
	Total      float64 `json:"total_ns"`
	Inside     float64 `json:"inside_ns"`  // of the tasks inside nodes; 0: the plan cuts
	Leaders    float64 `json:"leaders_ns"` // the plan on one rank of each node
	// By the model; 0: it has none for the collective.
	ModelTotal  float64 `json:"model_total_ns"`
	ModelInside float64 `json:"model_inside_ns"`
	// ToFirst is Total to that of the first of several plans; 0: there is one plan.
	ToFirst float64 `json:"to_first,omitempty"`
}

// meters measure on all ranks, and on one of each node.
type meters struct {
	all     passageMeter
	leaders tune.Meter // nil on other ranks
	on      *levels.Topology
	isFirst bool // this is rank 0
}

func (b *benchShare) run(c *cobra.Command, operand string) (err error) {
	if b.stop.Budget <= 0 {
		return kit.Usagef("--time %v: must be above 0", b.stop.Budget)
	}
	if b.file != "" && b.IsGiven("time") {
		return kit.Usagef("--time: a simulation with --simulate has no such thing")
	}
	if b.forced, err = bench.ReadPlans(&b.Problem, b.reg, b.given); err != nil {
		return err
	}
	if b.file == "" {
		return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, _ io.Writer) error {
			work, err := readWork(&b.Problem, operand)
			if err != nil {
				return err
			}
			return kit.RunRanks(c.Context(), b.Job, []string{""}, func(ctx context.Context, comms []*planner.Comm) error {
				return b.runRank(ctx, stdout, comms[0], work)
			})
		})
	}
	s, err := b.ReadSimulated(b.file)
	if err != nil {
		return err
	}
	m := meters{on: s.Topology(), all: meter.NewSimulated(s.Topology(), s.Machine, b.reg), isFirst: true}
	ranks, err := pickLeaders(m.on)
	if err != nil {
		return err
	}
	leaders, err := m.on.Sub(ranks)
	if err != nil {
		return err
	}
	m.leaders = tune.NewSimulatedMeter(leaders, s.Machine, b.reg)
	work, err := readWork(&b.Problem, operand)
	if err != nil {
		return err
	}
	return b.measureAll(c.Context(), c.OutOrStdout(), m, work)
}

// pickLeaders returns one rank of each node.
func pickLeaders(t *levels.Topology) ([]levels.Rank, error) {
	if t.Nodes() == 1 {
		return nil, kit.Usagef("%v is one node: all is inside it; give several, such as --topo 4x2", t)
	}
	return t.Pick(t.Nodes(), 1)
}

// runRank measures on one rank.
func (b *benchShare) runRank(ctx context.Context, stdout io.Writer, c *planner.Comm, work []tasks.Request) error {
	m := meters{on: c.Topology(), isFirst: c.Rank() == 0}
	ranks, err := pickLeaders(m.on)
	if err != nil {
		return err
	}
	sub, err := kit.SplitRanks(ctx, c, ranks)
	if err != nil {
		return err
	}
	if sub != nil {
		if m.leaders, err = tune.NewMeter(ctx, sub, costs.Single); err != nil {
			return err
		}
	}
	all, err := tune.NewBench(ctx, c)
	if err != nil {
		return err
	}
	all.Regime = costs.Single
	m.all = all
	if err := b.measureAll(ctx, stdout, m, work); err != nil || sub == nil {
		return err
	}
	return sub.Close()
}

// measureAll measures all requests, and prints the rows on rank 0.
func (b *benchShare) measureAll(ctx context.Context, stdout io.Writer, m meters, work []tasks.Request) error {
	var rows []shareRow
	for _, r := range work {
		of, err := b.measureRequest(ctx, m, r)
		if err != nil {
			return err
		}
		rows = append(rows, of...)
	}
	if !m.isFirst {
		return nil
	}
	results := map[string]any{"topology": m.on.String(), "links": b.Job.Links(), "rows": rows}
	return labkit.Print(stdout, b.json, results, labkit.Right, func(w io.Writer) {
		fmt.Fprintf(w, "# %v\n# µs; speedups: if the time inside nodes were nothing\n", b.Job)
		head := "collective\tbytes\ttotal\tinside\tspeedup\tleaders\tspeedup\tmodel\tinside\tspeedup"
		if len(b.forced) > 1 {
			head += "\tto first"
		}
		fmt.Fprintln(w, head+"\t plan")
		for _, r := range rows {
			fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
		}
	})
}

// cells returns a line of the table.
func (r shareRow) cells() []string {
	speedup := func(total, inside float64) string {
		if total-inside <= 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", total/(total-inside))
	}
	cells := []string{r.Collective, tasks.FormatBytes(r.Bytes), us(r.Total), "-", "-"}
	if r.Inside > 0 {
		cells[3], cells[4] = us(r.Inside), speedup(r.Total, r.Inside)
	}
	cells = append(cells, us(r.Leaders), fmt.Sprintf("%.2f", r.Total/r.Leaders), "-", "-", "-")
	if r.ModelTotal > 0 {
		copy(cells[7:], []string{us(r.ModelTotal), us(r.ModelInside), speedup(r.ModelTotal, r.ModelInside)})
	}
	if r.ToFirst > 0 {
		cells = append(cells, fmt.Sprintf("%.2f", r.ToFirst))
	}
	return append(cells, " "+r.Plan)
}

// measureRequest returns the rows of a request, one or two for each plan.
func (b *benchShare) measureRequest(ctx context.Context, m meters, r tasks.Request) (rows []shareRow, err error) {
	model, err := newShareModel(ctx, m.all, m.on, r.Bytes(), b.stop)
	if err != nil {
		return nil, err
	}
	var first []float64
	for i, forced := range b.forced {
		plans, err := b.plans(r, m.on, forced)
		if err != nil {
			return nil, err
		}
		for j, p := range plans {
			row, err := b.measure(ctx, m, r, p)
			if err != nil {
				return nil, fmt.Errorf("%v with %v: %w", r, p, err)
			}
			row.ModelTotal, row.ModelInside = model.times(r.Coll, costs.Segments(r, p) > 1)
			if i == 0 {
				first = append(first, row.Total)
			}
			if len(b.forced) > 1 && j < len(first) {
				row.ToFirst = row.Total / first[j]
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// plans returns the plan in one segment and, if that is another, as the rule or --plan cuts.
func (b *benchShare) plans(r tasks.Request, t *levels.Topology, forced tasks.Forced) ([]tasks.Plan, error) {
	p := forced.For(r.Coll)
	if p.Shape == 0 {
		p.Shape = tasks.Han
	}
	if p.Shape.IsFlat() {
		return nil, kit.Usagef("--plan: shape=%v has no part inside nodes", p.Shape)
	}
	whole := p
	whole.Segment, whole.Window = tasks.Whole, 1
	cut := choose.Complete(r, t, b.reg, p)
	whole = choose.Complete(r, t, b.reg, whole)
	for _, key := range whole.Keys() {
		// One segment goes along a chain from node to node: a tree suits it better.
		_, isGiven := p.Choice(key)
		if c, _ := whole.Choice(key); c.Algorithm == "chain" && !isGiven && hasTrees(r.Coll) {
			whole = whole.Set(key, tasks.Choice{Submodule: "adapt", Algorithm: "binomial"})
		}
	}
	if cut.Segment >= r.Bytes() {
		return []tasks.Plan{whole}, nil
	}
	return []tasks.Plan{whole, cut}, nil
}

// hasTrees reports whether the tasks of a collective can go along binomial trees.
func hasTrees(c tasks.Collective) bool {
	return c == tasks.Bcast || c == tasks.Reduce || c == tasks.Allreduce || c == tasks.Barrier
}

// measure returns the row of a plan.
func (b *benchShare) measure(ctx context.Context, m meters, r tasks.Request, p tasks.Plan) (row shareRow, err error) {
	row = shareRow{Collective: r.Coll.String(), Bytes: r.Bytes(), Plan: p.String()}
	total, err := m.all.Collective(ctx, r, p, b.stop)
	if err != nil {
		return row, err
	}
	row.Total = total.Slowest.P50
	made, err := costs.MakeupOf(r, m.on, p)
	if err != nil {
		return row, err
	}
	g, err := builtin.Outline(r, m.on, p)
	if err != nil {
		return row, err
	}
	for i, u := range made.Singles {
		if costs.Segments(r, p) > 1 || !g.On.WithinNodes(g.Phases[i].Level) {
			continue
		}
		one, err := m.all.Task(ctx, r, u.Plan(p), u.Phases, 1, b.stop)
		if err != nil {
			return row, err
		}
		row.Inside += one.Whole.P50
	}
	if m.leaders == nil {
		return row, nil
	}
	alone, err := m.leaders.Collective(ctx, r, p, b.stop)
	row.Leaders = alone.Slowest.P50
	if err == nil && !(row.Leaders > 0) {
		err = errors.New("the leaders took no time")
	}
	return row, err
}
