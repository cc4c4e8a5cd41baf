package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchTask is the command bench task.
type benchTask struct {
	Segments
	name      string
	op        string             // --op; empty: any collective
	shapeName string             // --shape; empty: the plan's, or any
	colls     []tasks.Collective // to look for the task in
	shape     tasks.Shape        // of --shape
}

func taskCommand(reg submodules.Registry) *cobra.Command {
	b := &benchTask{Segments: Segments{Registry: reg}}
	c := &cobra.Command{
		Use:   "task KIND",
		Short: "Measure what a task of a pipeline costs each leader",
		Long: `Measures a task such as ib, or a stage task such as sbib: any that "tierflow dag OP
--stages" draws. It is measured in the collective of --op and the shape of --shape or
--plan. Without these the first collective whose han-lockstep has it is taken, or else
the first other shape; with --op alone, the shapes of its default plans come first.
All tasks before it are really run, so that ranks begin it as skewed as they do there.
With --simulate all of that is simulated.

Shape han is measured as han-lockstep, where a stage ends on a rank before its next
begins. In other shapes segments flow as in a call: a task such as iar is measured in a
call of one segment, and a stage task such as iarsr takes from the end of the stage
before to its own end. A flat shape has one leader, the first rank.

The cost is the time on each leader, the median over repetitions. Of a stage that
occurs often (sbib of a bcast: once for each segment but the first) the time of
each occurrence is printed in µs, and from which on it is settled: the medians of
neighbours stay within 10%. The mean from there on is the cost. A plan's fs is ignored:
--bytes is the size of a segment. tierflow-lab figure draws what --json prints.`,
		Example: `  tierflow bench task ib --plan i=adapt/chain
  tierflow bench task sbib --bytes 128KiB --topo 6x2
  tierflow bench task sbib --plan i=adapt/chain --plan i=adapt/binary --json
  tierflow bench task sbib --topo 64x12 --simulate assumed
  tierflow bench task iar --op allreduce
  tierflow bench task sbiagirssr --op allreduce --shape rsag
  tierflow run -n 4 --no-prefix -- tierflow bench task sb --json`,
		Args: kit.Operand("a task or stage task such as ib, sb, sbib or sbibirsr"),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			b.name = args[0]
			if err := b.readWhere(); err != nil {
				return err
			}
			return b.RunOnRanks(c, b.run)
		}),
	}
	b.AddFlags(c)
	c.Flags().StringVar(&b.op, "op", "", "collective to measure the task in (default the first that has it)")
	c.Flags().StringVar(&b.shapeName, "shape", "", "shape to measure the task in (default that of --plan, or the first that has it)")
	return c
}

// readWhere reads --op and --shape.
func (b *benchTask) readWhere() error {
	b.colls = slices.DeleteFunc(tasks.Requestable(), func(c tasks.Collective) bool { return !c.HasData() })
	if b.op != "" {
		coll, err := kit.ParseCollective(b.op)
		if err != nil {
			return kit.Usagef("--op: %w", err)
		}
		b.colls = []tasks.Collective{coll}
		if err := b.CheckFlags(coll); err != nil {
			return err
		}
	}
	if b.shapeName == "" {
		return nil
	}
	for _, s := range tasks.Shapes() {
		if s.String() == b.shapeName {
			b.shape = s
			return nil
		}
	}
	return kit.Usagef("--shape %s: known are %v", b.shapeName, tasks.Shapes())
}

// TaskResult is the output for one stage task.
type TaskResult struct {
	Task        string        `json:"task"`
	Collective  string        `json:"collective"`
	Plan        string        `json:"plan"`
	Key         costs.Key     `json:"key"`
	LeaderRanks []levels.Rank `json:"leader_ranks"`
	costs.Cost
	Series []costs.Series `json:"series"`
}

func (b *benchTask) run(ctx context.Context, stdout, stderr io.Writer) error {
	results := make([]TaskResult, len(b.Forced))
	requests := make([]tasks.Request, len(b.Forced))
	plans := make([]tasks.Plan, len(b.Forced))
	for i, forced := range b.Forced {
		var err error
		if requests[i], plans[i], results[i].Key, err = b.findRequest(forced); err != nil {
			return err
		}
	}
	b.PrintHeader(stdout, stderr)
	isFirst := false
	err := b.RunOnMeter(ctx, func(ctx context.Context, m TaskMeter) error {
		for i, r := range requests {
			book := &costs.Book{}
			series, err := m.Stages(ctx, r, plans[i], b.Stop, book)
			if err != nil {
				return err
			}
			if m.Rank() == 0 {
				isFirst = true
				if err := results[i].fill(b.name, m.Topology(), r, plans[i], series, book); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || !isFirst {
		return err
	}
	return b.print(stdout, results)
}

// print prints the results.
func (b *benchTask) print(stdout io.Writer, results []TaskResult) error {
	if b.JSON {
		return kit.WriteJSON(stdout, document{newProvenance(b.Job, ""), results})
	}
	for _, r := range results {
		if err := r.print(stdout); err != nil {
			return err
		}
	}
	return nil
}

// fill takes the task's cost from the measurements.
func (r *TaskResult) fill(name string, t *levels.Topology, request tasks.Request, p tasks.Plan, series []costs.Series, book *costs.Book) error {
	cost, ok := book.Cost(r.Key)
	if !ok {
		return fmt.Errorf("measuring %v gave no cost of %s", request, name)
	}
	r.Task, r.Collective, r.Plan, r.LeaderRanks, r.Cost = name, request.Coll.String(), p.String(), LeadersOf(t, request, p), cost
	r.Series = slices.DeleteFunc(series, func(s costs.Series) bool { return s.Name != name })
	return nil
}

// place is where a task is looked for.
type place struct {
	shape tasks.Shape
	coll  tasks.Collective
}

// places returns where to look for the task, in this order: in the shapes given by --shape or the
// plan, or else in all shapes. Of all, the paper's stages come first; of one collective, the shapes of
// its default plans do.
func (b *benchTask) places(forced tasks.Forced) (all []place, err error) {
	order, err := b.shapeOrder(forced)
	if err != nil {
		return nil, err
	}
	isForAll := false // the plan's shape
	for _, item := range forced {
		isForAll = isForAll || item.Coll == 0 && item.Plan.Shape != 0
	}
	for _, shape := range order {
		for _, coll := range b.colls {
			planned := forced.For(coll).Shape
			if b.shape != 0 && planned != 0 && lockstep(b.shape) != lockstep(planned) {
				return nil, kit.Usagef("--shape %v: the plan has shape=%v; give one of the two", b.shape, planned)
			}
			given := lockstep(cmp.Or(b.shape, planned))
			if given == shape || given == 0 && !isForAll {
				all = append(all, place{shape, coll})
			}
		}
	}
	if len(all) == 0 { // one collective, without the shape of a plan for all
		return nil, kit.Usagef("--plan: the shapes of %v are %s", b.colls[0], strings.Join(kit.Words(tasks.ShapesOf(b.colls[0]), tasks.Shape.String), ", "))
	}
	return all, nil
}

// shapeOrder returns all shapes that tasks are measured in, in the order of [benchTask.places].
func (b *benchTask) shapeOrder(forced tasks.Forced) (all []tasks.Shape, err error) {
	var first []tasks.Shape
	if len(b.colls) == 1 {
		for _, n := range pipelineLengths(0) {
			_, p, err := b.MakeRequest(b.colls[0], n, forced, 0)
			if err != nil {
				return nil, err
			}
			first = append(first, p.Shape)
		}
	}
	for _, s := range append(append(first, tasks.HanLockstep), tasks.Shapes()...) {
		if s = lockstep(s); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all, nil
}

// lockstep returns the shape that tasks of s are measured in: han's in the paper's stages.
func lockstep(s tasks.Shape) tasks.Shape {
	if s == tasks.Han {
		return tasks.HanLockstep
	}
	return s
}

// pipelineLengths returns the segments of pipelines of a shape to look for a task in: a long one first.
// Where segments flow, one segment comes before it: its tasks are each a stage, beside no others.
func pipelineLengths(s tasks.Shape) []int64 {
	const phases = 2 * levels.MaxDepth // at most
	all := []int64{phases + costs.Extra, 1, 2, 3, 4, 5, 6, 7}
	if s != tasks.HanLockstep {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// findRequest returns the request of the first shape and collective with the task, in a long
// pipeline or else in a short one.
func (b *benchTask) findRequest(forced tasks.Forced) (r tasks.Request, p tasks.Plan, key costs.Key, err error) {
	places, err := b.places(forced)
	if err != nil {
		return r, p, key, err
	}
	var known []string
	var unfit error
	for _, at := range places {
		for _, n := range pipelineLengths(at.shape) {
			if r, p, err = b.MakeRequest(at.coll, n, forced, at.shape); err != nil {
				return r, p, key, err
			}
			keys, err := stageKeys(r, b.Job.Topology(), p)
			if errors.Is(err, tasks.ErrPlan) {
				unfit = err
				break // a shape that the collective doesn't have, or not on these ranks
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
	if len(known) == 0 {
		return r, p, key, kit.UsageError(unfit)
	}
	return r, p, key, b.unknown(places, known)
}

// unknown complains that there is no such task.
func (b *benchTask) unknown(places []place, known []string) error {
	where := fmt.Sprintf("on %v", b.Job.Topology())
	if len(b.colls) == 1 {
		where = fmt.Sprintf("of %v %s", b.colls[0], where)
	}
	if first := places[0].shape; places[len(places)-1].shape == first {
		where = fmt.Sprintf("in shape=%v %s", first, where)
	}
	return kit.Usagef("no leader has a task %q %s; known are %s", b.name, where, strings.Join(known, ", "))
}

// stageKeys returns the keys of all leaders, in the order of stages.
func stageKeys(r tasks.Request, t *levels.Topology, p tasks.Plan) (keys []costs.Key, err error) {
	if _, err := tasks.Hierarchy(r, t, p); err != nil {
		return nil, err
	}
	for _, lead := range LeadersOf(t, r, p) {
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

// LeadersOf returns the leaders of the innermost groups, in the order of groups; none if the plan
// doesn't fit.
func LeadersOf(t *levels.Topology, r tasks.Request, p tasks.Plan) (all []levels.Rank) {
	h, err := tasks.Hierarchy(r, t, p)
	if err != nil {
		return nil
	}
	for _, g := range h.Groups(0) {
		all = append(all, g.Lead())
	}
	return all
}

func (r TaskResult) print(out io.Writer) error {
	fmt.Fprintf(out, "# %s of %s, plan %s\n", r.Task, r.Collective, r.Plan)
	fmt.Fprintf(out, "slowest leader: %.1f µs ± %.1f (95%%), p50 %.1f, min %.1f, p95 %.1f, max %.1f; %d samples, %d outliers\n",
		r.Mean/1e3, r.Half/1e3, r.P50/1e3, r.Min/1e3, r.P95/1e3, r.Max/1e3, r.N, r.Outliers)
	w := kit.NewTable(out)
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
