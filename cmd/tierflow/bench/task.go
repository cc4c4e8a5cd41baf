package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/costs"
	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchTasks is what bench task and bench overlap share: segments on a machine.
type benchTasks struct {
	kit.Problem
	json bool
	stop stats.Stop
	reg  submodules.Registry

	segment int64
	forced  tasks.Forced
}

func (b *benchTasks) addFlags(c *cobra.Command) {
	b.AddJobFlags(c)
	b.AddRequestFlags(c, "64KiB", "size of a segment")
	b.AddPlanFlag(c, kit.PlanText)
	c.Flags().DurationVar(&b.stop.Budget, "time", time.Second, "time for the repetitions, if 95% confidence of the mean within 2.5% doesn't come first")
	c.Flags().BoolVar(&b.json, "json", false, "print JSON")
}

// runOnRanks reads the flags, prepares ranks, and calls f. The writers that f gets
// print on rank 0 only.
func (b *benchTasks) runOnRanks(c *cobra.Command, f func(ctx context.Context, stdout, stderr io.Writer) error) error {
	if err := b.read(); err != nil {
		return err
	}
	return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, stderr io.Writer) error {
		return f(c.Context(), stdout, stderr)
	})
}

func (b *benchTasks) read() (err error) {
	if b.segment, err = b.ReadSize(); err != nil {
		return err
	}
	if b.segment < 1 || b.segment > maxSegment {
		return kit.Usagef("--bytes %s: a segment has 1B to %s", b.Bytes, tasks.FormatBytes(maxSegment))
	}
	if b.stop.Budget <= 0 {
		return kit.Usagef("--time %v: must be above 0", b.stop.Budget)
	}
	b.forced, err = b.Problem.ReadForced(b.reg)
	return err
}

// maxSegment bounds the buffers, of a few dozen segments.
const maxSegment = 256 << 20

// printHeader describes the machine, once arguments are known to be right.
func (b *benchTasks) printHeader(stdout, stderr io.Writer) {
	if b.json {
		stdout = stderr
	}
	fmt.Fprintf(stdout, "# %v; %d CPUs\n", b.Job, runtime.NumCPU())
}

// makeRequest returns a request of n segments and its plan in lockstep.
func (b *benchTasks) makeRequest(coll tasks.Collective, n int64) (tasks.Request, tasks.Plan, error) {
	r, err := b.ReadRequest(coll, b.segment, b.Job.Topology())
	if err != nil {
		return r, tasks.Plan{}, err
	}
	r.Count *= n
	p := b.forced.For(coll)
	p.Shape, p.Segment = tasks.HanLockstep, b.segment
	base, _ := rule.Choose(r, b.Job.Topology(), p)
	return r, p.Over(base), nil
}

// runOnBench calls f on each rank's bench.
func (b *benchTasks) runOnBench(ctx context.Context, f func(ctx context.Context, m *meter.Bench) error) error {
	return kit.RunRanks(ctx, b.Job, []string{""}, func(ctx context.Context, comms []*planner.Comm) error {
		m, err := tune.NewBench(ctx, comms[0])
		if err != nil {
			return err
		}
		return f(ctx, m)
	})
}

// benchTask is the command bench task.
type benchTask struct {
	benchTasks
	name string
}

func taskCommand(reg submodules.Registry) *cobra.Command {
	b := &benchTask{benchTasks: benchTasks{reg: reg}}
	c := &cobra.Command{
		Use:   "task KIND",
		Short: "Measure what a task of a pipeline costs each leader",
		Long: `Measures a task such as ib, or a stage task such as sbib, in the first collective
that has it, in lockstep, where a stage ends on a rank before its next begins: all
tasks before it are really run, so that ranks begin it as skewed as they do there.

The cost is the time on each leader, the median over repetitions. Of a stage that
occurs often (sbib of a bcast: once for each segment but the first) the time of
each occurrence is printed in µs, and from which on it is settled: the medians of
neighbours stay within 10%. The mean from there on is the cost. A plan's shape and fs are ignored:
--bytes is the size of a segment.`,
		Example: `  tierflow bench task ib --plan i=adapt/chain
  tierflow bench task sbib --bytes 128KiB --topo 6x2
  tierflow run -n 4 -- tierflow bench task sb --json`,
		Args: kit.Operand("a task or stage task such as ib, sb, sbib or sbibirsr"),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			b.name = args[0]
			return b.runOnRanks(c, b.run)
		}),
	}
	b.addFlags(c)
	return c
}

// taskResult is the output for one stage task.
type taskResult struct {
	Task        string        `json:"task"`
	Collective  string        `json:"collective"`
	Plan        string        `json:"plan"`
	Key         costs.Key     `json:"key"`
	LeaderRanks []levels.Rank `json:"leader_ranks"`
	costs.Cost
	Series []costs.Series `json:"series"`
}

func (b *benchTask) run(ctx context.Context, stdout, stderr io.Writer) error {
	r, p, key, err := b.findRequest()
	if err != nil {
		return err
	}
	b.printHeader(stdout, stderr)
	var result taskResult
	err = b.runOnBench(ctx, func(ctx context.Context, m *meter.Bench) error {
		book := &costs.Book{}
		series, err := m.Stages(ctx, r, p, b.stop, book)
		if err != nil || m.Rank() > 0 {
			return err
		}
		cost, ok := book.Cost(key)
		if !ok {
			return fmt.Errorf("measuring %v gave no cost of %s", r, b.name)
		}
		series = slices.DeleteFunc(series, func(s costs.Series) bool { return s.Name != b.name })
		result = taskResult{Task: b.name, Collective: r.Coll.String(), Plan: p.String(), Key: key, LeaderRanks: leadersOf(m.Topology(), r, p), Cost: cost, Series: series}
		return nil
	})
	switch {
	case err != nil:
		return err
	case b.json:
		return kit.WriteJSON(stdout, result)
	}
	return result.print(stdout)
}

// findRequest returns the request of the first collective that has the task, in a long
// pipeline or else in a short one.
func (b *benchTask) findRequest() (r tasks.Request, p tasks.Plan, key costs.Key, err error) {
	var known []string
	for _, coll := range tasks.Requestable() {
		if coll == tasks.Barrier {
			continue
		}
		const phases = 2 * levels.MaxDepth // at most
		for _, n := range append([]int64{phases + costs.Extra}, 1, 2, 3, 4, 5, 6, 7) {
			if r, p, err = b.makeRequest(coll, n); err != nil {
				return r, p, key, err
			}
			keys, err := stageKeys(r, b.Job.Topology(), p)
			if errors.Is(err, tasks.ErrPlan) {
				break // a scan where ranks aren't numbered node by node
			}
			if err != nil {
				return r, p, key, err
			}
			for _, k := range keys {
				if k.Task == b.name {
					return r, p, k, nil
				}
				if !slices.Contains(known, k.Task) {
					known = append(known, k.Task)
				}
			}
		}
	}
	return r, p, key, kit.Usagef("no leader has a task %q on %v; known are %s", b.name, b.Job.Topology(), strings.Join(known, ", "))
}

// stageKeys returns the keys of all leaders, in the order of stages.
func stageKeys(r tasks.Request, t *levels.Topology, p tasks.Plan) (keys []costs.Key, err error) {
	if _, err := tasks.Hierarchy(r, t, p); err != nil {
		return nil, err
	}
	for _, lead := range leadersOf(t, r, p) {
		g, err := tasks.Expand(r, t, p, lead)
		if err != nil {
			return nil, err
		}
		_, of, err := costs.StageKeys(g)
		if err != nil {
			return nil, err
		}
		keys = append(keys, of...)
	}
	return keys, nil
}

// leadersOf returns the leaders of the innermost groups, in the order of groups; none
// where the plan doesn't fit.
func leadersOf(t *levels.Topology, r tasks.Request, p tasks.Plan) (all []levels.Rank) {
	h, err := tasks.Hierarchy(r, t, p)
	if err != nil {
		return nil
	}
	for _, g := range h.Groups(0) {
		all = append(all, g.Lead())
	}
	return all
}

func (r taskResult) print(out io.Writer) error {
	fmt.Fprintf(out, "# %s of %s, plan %s\n", r.Task, r.Collective, r.Plan)
	fmt.Fprintf(out, "slowest leader: %.1f µs ± %.1f (95%%), p50 %.1f, min %.1f, p95 %.1f, max %.1f; %d samples, %d outliers\n",
		r.Mean/1e3, r.Half/1e3, r.P50/1e3, r.Min/1e3, r.P95/1e3, r.Max/1e3, r.N, r.Outliers)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, ns := range r.Leaders {
		if ns == 0 {
			continue
		}
		fmt.Fprintf(w, "r%d\t%.1f µs\t", r.LeaderRanks[i], ns/1e3)
		for _, s := range r.Series {
			if s.Leader == i {
				fmt.Fprint(w, settledText(s))
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// settledText returns figure 3 of the HAN paper in numbers.
func settledText(s costs.Series) string {
	text := "not settled:"
	if s.Settled {
		text = fmt.Sprintf("settled from #%d on:", s.From)
	}
	for _, ns := range s.NS {
		text += fmt.Sprintf(" %.0f", ns/1e3)
	}
	return text
}
