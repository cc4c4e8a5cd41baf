package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchShare is the command bench share.
type benchShare struct {
	kit.Problem
	reg   submodules.Registry
	file  string // --simulate; empty: nothing is simulated
	json  bool
	stop  stats.Stop
	colls []tasks.Collective
	sizes []int64
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

Without --plan each size is measured with the built-in rule's algorithms, in one segment
and, if the rule cuts, as the rule cuts.`,
		Example: `  tierflow bench share bcast,allreduce --topo 4x2 --bytes 4,256KiB,1MiB
  tierflow bench share barrier,bcast --topo 16x4 --simulate assumed`,
		Args: kit.Operand("collectives: bcast,allreduce"),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error { return b.run(c, args[0]) }),
	}
	b.AddJobFlags(c)
	b.AddRequestFlags(c, "4,64KiB,1MiB", "sizes of a rank's buffer")
	b.AddPlanFlag(c, kit.PlanText)
	f := c.Flags()
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
}

// meters are what measures on all ranks and on one of each node.
type meters struct {
	all, leaders  tune.Meter // leaders is nil on other ranks
	on, onLeaders *levels.Topology
	isFirst       bool // this is rank 0
}

func (b *benchShare) run(c *cobra.Command, operand string) (err error) {
	if b.colls, err = kit.ParseCollectives(operand); err != nil {
		return err
	}
	if b.sizes, err = kit.ParseSizes(b.Bytes); err != nil {
		return kit.Usagef("--bytes: %w", err)
	}
	if b.stop.Budget <= 0 {
		return kit.Usagef("--time %v: must be above 0", b.stop.Budget)
	}
	if b.file != "" {
		s, err := b.ReadSimulated(b.file)
		if err != nil {
			return err
		}
		b.Job = s
		leaders, err := oneEach(s.Topology())
		if err != nil {
			return err
		}
		m := meters{
			on: s.Topology(), all: tune.NewSimulatedMeter(s.Topology(), s.Machine, b.reg),
			onLeaders: leaders, leaders: tune.NewSimulatedMeter(leaders, s.Machine, b.reg), isFirst: true,
		}
		return b.print(c.Context(), c.OutOrStdout(), m)
	}
	return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, _ io.Writer) error {
		return kit.RunRanks(c.Context(), b.Job, []string{""}, func(ctx context.Context, comms []*planner.Comm) error {
			return b.runRank(ctx, stdout, comms[0])
		})
	})
}

// oneEach returns the topology of one rank of each node.
func oneEach(t *levels.Topology) (*levels.Topology, error) {
	ranks, err := t.Pick(t.Nodes(), 1)
	if err != nil {
		return nil, err
	}
	return t.Sub(ranks)
}

// runRank measures on one rank.
func (b *benchShare) runRank(ctx context.Context, stdout io.Writer, c *planner.Comm) (err error) {
	m := meters{on: c.Topology(), isFirst: c.Rank() == 0}
	if m.onLeaders, err = oneEach(m.on); err != nil {
		return err
	}
	ranks, err := m.on.Pick(m.on.Nodes(), 1)
	if err != nil {
		return err
	}
	color := planner.NoColor
	for _, r := range ranks {
		if int(r) == c.Rank() {
			color = 0
		}
	}
	sub, err := c.Split(ctx, color, c.Rank())
	if err != nil {
		return err
	}
	if sub != nil {
		if m.leaders, err = tune.NewMeter(ctx, sub, costs.Single); err != nil {
			return err
		}
	}
	if m.all, err = tune.NewMeter(ctx, c, costs.Single); err != nil {
		return err
	}
	if !m.isFirst {
		stdout = io.Discard
	}
	if err := b.print(ctx, stdout, m); err != nil || sub == nil {
		return err
	}
	return sub.Close()
}

// print measures and prints all rows.
func (b *benchShare) print(ctx context.Context, stdout io.Writer, m meters) error {
	var rows []shareRow
	for _, coll := range b.colls {
		for _, n := range b.sizes {
			r, err := b.ReadRequest(coll, n, m.on)
			if err != nil {
				return err
			}
			plans, err := b.plans(r, m.on)
			if err != nil {
				return err
			}
			for _, p := range plans {
				row, err := b.measure(ctx, m, r, p)
				if err != nil {
					return fmt.Errorf("%v with %v: %w", r, p, err)
				}
				rows = append(rows, row)
			}
			if !coll.HasData() {
				break
			}
		}
	}
	switch {
	case !m.isFirst:
		return nil
	case b.json:
		return kit.WriteJSON(stdout, map[string]any{"topology": m.on.String(), "links": b.Job.Links(), "rows": rows})
	}
	fmt.Fprintf(stdout, "# %v\n# µs; speedups: if the time inside nodes were nothing\n", b.Job)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "collective\tbytes\ttotal\tinside\tspeedup\tleaders\tspeedup\t plan")
	for _, r := range rows {
		inside, by := "-", "-"
		if r.Inside > 0 {
			inside, by = fmt.Sprintf("%.1f", r.Inside/1e3), fmt.Sprintf("%.2f", r.Total/max(r.Total-r.Inside, 1))
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%s\t%s\t%.1f\t%.2f\t %s\n", r.Collective, tasks.FormatBytes(r.Bytes), r.Total/1e3, inside, by, r.Leaders/1e3, r.Total/r.Leaders, r.Plan)
	}
	return w.Flush()
}

// plans returns the plan in one segment and, if that is another, as the rule or --plan cuts.
func (b *benchShare) plans(r tasks.Request, t *levels.Topology) ([]tasks.Plan, error) {
	forced, err := b.ReadForced(b.reg)
	if err != nil {
		return nil, err
	}
	p := forced.For(r.Coll)
	if p.Shape == 0 {
		p.Shape = tasks.Han
	}
	if p.Shape.IsFlat() {
		return nil, kit.Usagef("--plan: shape=%v has no part inside nodes", p.Shape)
	}
	base, _ := rule.Choose(r, t, p)
	cut := p.Over(base)
	whole := cut
	whole.Segment, whole.Window = tasks.Whole, 1
	if cut.Segment >= r.Bytes() {
		return []tasks.Plan{whole}, nil
	}
	return []tasks.Plan{whole, cut}, nil
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
	g, err := rule.Outline(r, m.on, p)
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
