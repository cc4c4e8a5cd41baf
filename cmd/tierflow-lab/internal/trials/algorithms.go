package trials

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchAlgorithms is the command algorithms.
type benchAlgorithms struct {
	bench.Coll
	asJSON bool
	rows   []row
}

func algorithmsCommand(reg submodules.Registry) *cobra.Command {
	b := &benchAlgorithms{Coll: bench.Coll{Registry: reg}}
	c := &cobra.Command{
		Use:   "algorithms [OP,OP]",
		Short: "Measure each submodule's algorithms side by side",
		Long: `Measures collectives with each algorithm of each submodule in turn: between
nodes on goroutine ranks over an emulated link, or inside a node on the processes
of tierflow run. For bcast the algorithm does the bcast of that level, for
allreduce and reduce the reduction, for those with blocks the same between its
groups; everything else is as the built-in rule has it. An algorithm is measured with
each number and inner segment that tierflow info names for it, too. Cells are the median over samples of the slowest rank's time per call, in µs, as bench
coll measures it.`,
		Example: `  tierflow-lab algorithms
  tierflow-lab algorithms bcast --bytes 64KiB,4MiB --time 1s
  tierflow run -n 4 -- tierflow-lab algorithms`,
		Args: cobra.MaximumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			operand := "bcast,allreduce"
			if len(args) == 1 {
				operand = args[0]
			}
			return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, _ io.Writer) error {
				return b.run(c.Context(), operand, stdout)
			})
		}),
	}
	b.AddJobFlags(c)
	b.AddDataFlags(c, "4KiB,64KiB,1MiB,16MiB", "sizes of a rank's buffer")
	b.AddRootFlag(c)
	c.Flags().DurationVar(&b.Effort.Time, "time", 100*time.Millisecond, "time for each size and algorithm")
	c.Flags().BoolVar(&b.asJSON, "json", false, "print JSON")
	return c
}

// row is one algorithm's times of one size.
type row struct {
	Level        string `json:"level"`
	Algorithm    string `json:"algorithm"` // submodule/algorithm
	Task         string `json:"task"`      // the kind it did
	bench.Result        // of one size
}

// run measures between emulated nodes, or, on launched processes, inside the node.
func (b *benchAlgorithms) run(ctx context.Context, operand string, stdout io.Writer) error {
	if slices.Contains(strings.Split(operand, ","), tasks.Barrier.String()) {
		return kit.Usagef("barrier: it has no algorithms to compare")
	}
	if err := b.Read(operand); err != nil {
		return err
	}
	t := b.Job.Topology()
	level, out := t.Level(t.Depth()-1), stdout
	if kit.IsLaunched() {
		level = t.Level(0)
	}
	if b.asJSON {
		out = io.Discard
	}
	if err := b.measureTable(ctx, level, out); err != nil || !b.asJSON {
		return err
	}
	return kit.WriteJSON(stdout, map[string]any{"results": b.rows})
}

// measureTable measures all algorithms of a level and prints a line for each.
func (b *benchAlgorithms) measureTable(ctx context.Context, level levels.Level, stdout io.Writer) error {
	fmt.Fprintf(stdout, "# level %v of %v; %d CPUs; p50 in µs\n", level, b.Job, runtime.NumCPU())
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for rest := b.Work; len(rest) > 0; rest = rest[len(b.Work):] {
		coll := rest[0].Coll
		b.Work = rest
		if end := slices.IndexFunc(rest, func(r tasks.Request) bool { return r.Coll != coll }); end >= 0 {
			b.Work = rest[:end]
		}
		if len(b.rows) == 0 {
			head := "collective\ttask\talgorithm\t"
			for _, r := range b.Work {
				head += tasks.FormatBytes(r.Bytes()) + "\t"
			}
			fmt.Fprintln(w, head)
		}
		kind := tasks.Kind{Symbol: level.Symbol, Op: tasks.Bcast}
		switch {
		case rest[0].Blocks():
			kind.Op = coll
		case coll.Reduces():
			kind.Op = tasks.Reduce
		}
		for _, choice := range b.listChoices(kind.Op, level) {
			if err := b.measureOne(ctx, kind, choice); err != nil {
				return fmt.Errorf("%v=%v: %w", kind, choice, err)
			}
			line := fmt.Sprintf("%v\t%v\t%v\t", coll, kind, choice)
			for _, r := range b.Results.All {
				line += fmt.Sprintf("%.1f\t", r.P50)
				b.rows = append(b.rows, row{level.String(), choice.String(), kind.String(), r})
			}
			fmt.Fprintln(w, line)
		}
	}
	return w.Flush()
}

// listChoices returns the algorithms for an operation on a level.
func (b *benchAlgorithms) listChoices(op tasks.Collective, level levels.Level) []tasks.Choice {
	var all []tasks.Choice
	for _, s := range b.Registry {
		if s.Reach() == submodules.SharedNode && level.Symbol != levels.NodeSymbol {
			continue
		}
		for _, a := range s.Algorithms() {
			if !a.Does(op) {
				continue
			}
			c := tasks.Choice{Submodule: s.Name(), Algorithm: a.Name}
			all = append(all, c)
			for _, n := range a.Number.Worth {
				all = append(all, tasks.Choice{Submodule: c.Submodule, Algorithm: c.Algorithm, N: n})
			}
			for _, inner := range a.Inners {
				all = append(all, tasks.Choice{Submodule: c.Submodule, Algorithm: c.Algorithm, Inner: inner})
			}
		}
	}
	return all
}

// measureOne measures all sizes with one algorithm.
func (b *benchAlgorithms) measureOne(ctx context.Context, kind tasks.Kind, c tasks.Choice) error {
	plan := tasks.Plan{Shape: tasks.Han}.Set(kind.String(), c)
	b.Results = bench.Results{Out: io.Discard, JSON: true}
	if err := kit.RunRanks(ctx, b.Job, []string{plan.String()}, b.RunRank); err != nil {
		return err
	}
	for _, r := range b.Results.All {
		if r.Wrong > 0 {
			return fmt.Errorf("%d wrong elements of %s", r.Wrong, tasks.FormatBytes(r.Bytes))
		}
	}
	return nil
}
