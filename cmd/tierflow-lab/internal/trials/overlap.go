package trials

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchOverlap is the command overlap.
type benchOverlap struct {
	bench.Segments
	svg string // a file for a figure; empty: none
}

func overlapCommand(reg submodules.Registry) *cobra.Command {
	b := &benchOverlap{Segments: bench.Segments{Registry: reg}}
	c := &cobra.Command{
		Use:   "overlap [KIND+KIND...]",
		Short: "Measure how much of a task another one hides",
		Long: `Measures two tasks alone and begun at the same time, each on a segment of its own,
on each leader (HAN, figures 2 and 6): without operands ib with sb, and ib with ir.
Columns are medians in µs. "perfect" is the longer of the two alone, what they take
together if the shorter one hides behind it; "hidden" is how much of the shorter one
did: 100% is perfect, 0% one after the other, - where it is too short to tell. "in turn" is the stage task, such as
sbib, in a pipeline in lockstep, where ranks begin as skewed as they do there. If it
occurs often, "first" is its first time there, right after the stage before it.

--svg draws all of that, one panel for each pair and plan.`,
		Example: `  tierflow-lab overlap --topo 6x2
  tierflow-lab overlap ib+sb --plan i=adapt/chain --bytes 128KiB
  tierflow-lab overlap ib+ir --plan i=adapt/chain --plan i=adapt/binary --svg overlap.svg
  tierflow-lab overlap --topo 64x12 --simulate assumed`,
		Args: cobra.ArbitraryArgs,
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			if err := kit.CheckOutput("svg", b.svg); err != nil {
				return err
			}
			return b.RunOnRanks(c, func(ctx context.Context, stdout, stderr io.Writer) error { return b.run(ctx, args, stdout, stderr) })
		}),
	}
	b.AddFlags(c)
	c.Flags().StringVar(&b.svg, "svg", "", "draw the times of each leader to a file")
	return c
}

// pair is two kinds of task, in a collective with both.
type pair struct {
	kinds   [2]tasks.Kind
	request tasks.Request
	plan    tasks.Plan
}

// overlapResult is the output for a pair.
type overlapResult struct {
	Kinds       [2]string     `json:"kinds"`
	Collective  string        `json:"collective"`
	Plan        string        `json:"plan"`
	LeaderRanks []levels.Rank `json:"leader_ranks"`
	Alone       [2]costs.Cost `json:"alone"`
	Together    costs.Cost    `json:"together"`
	Stage       string        `json:"stage"`              // the stage task of both
	First       []float64     `json:"first_ns,omitempty"` // by leader: the stage task's first time; nil: it occurs once
	InTurn      costs.Cost    `json:"in_turn"`
}

func (b *benchOverlap) run(ctx context.Context, names []string, stdout, stderr io.Writer) error {
	pairs, err := b.pairs(names)
	if err != nil {
		return err
	}
	b.PrintHeader(stdout, stderr)
	var results []overlapResult
	err = b.RunOnMeter(ctx, func(ctx context.Context, m bench.TaskMeter) error {
		for _, p := range pairs {
			result, err := p.measure(ctx, m, b.Stop)
			if err != nil {
				return err
			}
			if m.Rank() == 0 {
				results = append(results, result)
			}
		}
		return nil
	})
	if err != nil || len(results) == 0 {
		return err // or this isn't rank 0
	}
	err = labkit.Print(stdout, b.JSON, map[string]any{"results": results}, labkit.Right, func(w io.Writer) {
		for i := range results {
			results[i].print(w)
		}
	})
	if err != nil {
		return err
	}
	return labkit.Draw(stdout, b.svg, drawOverlaps(b.Segment, b.Job, results))
}

// pairs reads operands such as ib+sb, each with all plans.
func (b *benchOverlap) pairs(names []string) (all []pair, err error) {
	optional := len(names) == 0
	if optional {
		names = []string{"ib+sb", "ib+ir"}
	}
	for _, name := range names {
		for _, forced := range b.Forced {
			p, err := b.pair(name, forced)
			if err != nil && (!optional || name == names[0]) {
				return nil, err
			}
			if err == nil {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// pair reads one operand and finds the collective.
func (b *benchOverlap) pair(name string, forced tasks.Forced) (p pair, err error) {
	first, second, _ := strings.Cut(name, "+")
	var known []string
	for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
		if p.request, p.plan, err = b.MakeRequest(coll, 2, forced, tasks.HanLockstep); err != nil {
			return p, err
		}
		g, err := tasks.Expand(p.request, b.Job.Topology(), p.plan, 0)
		if err != nil {
			return p, err
		}
		found := 0
		for _, ph := range g.Phases {
			for i, want := range []string{first, second} {
				if ph.Kind.String() == want {
					p.kinds[i] = ph.Kind
					found |= 1 << i
				}
			}
			if kind := ph.Kind.String(); !slices.Contains(known, kind) {
				known = append(known, kind)
			}
		}
		if found == 3 && first != second {
			return p, nil
		}
	}
	return p, kit.Usagef("%q: write two kinds that one collective has, such as ib+sb; bcast and allreduce on %v have %s",
		name, b.Job.Topology(), strings.Join(known, ", "))
}

// measure measures the pair on one rank.
func (p pair) measure(ctx context.Context, m bench.TaskMeter, stop stats.Stop) (r overlapResult, err error) {
	o, err := m.Overlap(ctx, p.request, p.plan, p.kinds, stop)
	if err != nil {
		return r, err
	}
	book := &costs.Book{}
	series, err := m.Stages(ctx, p.request, p.plan, stop, book)
	if err != nil {
		return r, err
	}
	r = overlapResult{
		Kinds: [2]string{p.kinds[0].String(), p.kinds[1].String()}, Collective: p.request.Coll.String(), Plan: p.plan.String(),
		LeaderRanks: bench.LeadersOf(m.Topology(), p.request, p.plan), Alone: o.Alone, Together: o.Together,
	}
	for _, k := range book.Keys() {
		if k.Task == r.Kinds[0]+r.Kinds[1] || k.Task == r.Kinds[1]+r.Kinds[0] {
			r.Stage = k.Task
			r.InTurn, _ = book.Cost(k)
		}
	}
	for _, s := range series {
		if s.Name == r.Stage && len(s.NS) > 0 {
			if r.First == nil {
				r.First = make([]float64, len(r.LeaderRanks))
			}
			r.First[s.Leader] = s.NS[0]
		}
	}
	return r, nil
}

// print writes a line for each leader, and one for the slowest.
func (r *overlapResult) print(w io.Writer) {
	fmt.Fprintf(w, "# %s with %s, of %s, plan %s; %d samples\n", r.Kinds[0], r.Kinds[1], r.Collective, r.Plan, r.Together.N)
	head := []string{"leader", r.Kinds[0], r.Kinds[1], "together", "perfect", "hidden"}
	if r.Stage != "" {
		if r.First != nil {
			head = append(head, r.Stage+" first")
		}
		head = append(head, r.Stage+" in turn")
	}
	fmt.Fprintln(w, strings.Join(head, "\t")+"\t")
	row := func(name string, a, b, together, first, inTurn float64) {
		cells := []string{name, us(a), us(b), us(together), us(max(a, b)), hiddenText(a, b, together)}
		if r.First != nil {
			cells = append(cells, us(first))
		}
		if r.Stage != "" {
			cells = append(cells, us(inTurn))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	for i, rank := range r.LeaderRanks {
		row(fmt.Sprintf("r%d", rank), at(r.Alone[0].Leaders, i), at(r.Alone[1].Leaders, i), at(r.Together.Leaders, i), at(r.First, i), at(r.InTurn.Leaders, i))
	}
	first := 0.0
	if r.First != nil {
		first = slices.Max(r.First)
	}
	row("slowest", r.Alone[0].P50, r.Alone[1].P50, r.Together.P50, first, r.InTurn.P50)
}

// us returns a time in µs.
func us(ns float64) string { return fmt.Sprintf("%.1f", ns/1e3) }

// at returns a value, or 0 beyond the end.
func at(values []float64, i int) float64 {
	if i >= len(values) {
		return 0
	}
	return values[i]
}

// hiddenText returns how much of the shorter task was hidden, or - if one task is too
// short beside the other to tell.
func hiddenText(a, b, together float64) string {
	if min(a, b) < max(a, b)/10 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*meter.Hidden(a, b, together))
}
