package trials

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/bench"
	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/launch"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchAlgorithms is the command algorithms.
type benchAlgorithms struct {
	bench.Coll
	ranks  int
	asJSON bool
	args   []string // as given, for the ranks that are launched
	rows   []row
}

func algorithmsCommand(reg submodules.Registry) *cobra.Command {
	b := &benchAlgorithms{Coll: bench.Coll{Registry: reg}}
	c := &cobra.Command{
		Use:   "algorithms [OP,OP]",
		Short: "Measure each submodule's algorithms side by side",
		Long: `Measures collectives with each algorithm of each submodule in turn: between
nodes on goroutine ranks over an emulated link, and inside a node on processes
that it launches. For bcast the algorithm does the bcast of that level, for
allreduce and reduce the reduction, for those with blocks the same between its
groups; everything else is as the built-in rule has it. An algorithm is measured with
each number and inner segment that tierflow info names for it, too. Cells are the median over samples of the slowest rank's time per call, in µs, as bench
coll measures it.`,
		Example: `  tierflow-lab algorithms
  tierflow-lab algorithms bcast --bytes 64KiB,4MiB --time 1s`,
		Args: cobra.MaximumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			operand := "bcast,allreduce"
			if len(args) == 1 {
				operand = args[0]
			}
			b.args = append([]string{operand}, "--bytes", b.Bytes, "--time", b.Effort.Time.String(), "--json="+strconv.FormatBool(b.asJSON))
			for _, name := range []string{"dtype", "reduce-op", "root"} {
				if f := c.Flags().Lookup(name); f.Changed {
					b.args = append(b.args, "--"+name, f.Value.String())
				}
			}
			return b.runBoth(c.Context(), operand, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		}),
	}
	b.AddJobFlags(c)
	b.AddDataFlags(c, "4KiB,64KiB,1MiB,16MiB", "sizes of a rank's buffer")
	b.AddRootFlag(c)
	c.Flags().DurationVar(&b.Effort.Time, "time", 100*time.Millisecond, "time for each size and algorithm")
	c.Flags().BoolVar(&b.asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&b.ranks, "ranks", 4, "processes of the node")
	return c
}

// row is one algorithm's times of one size.
type row struct {
	Level        string `json:"level"`
	Algorithm    string `json:"algorithm"` // submodule/algorithm
	Task         string `json:"task"`      // the kind it did
	bench.Result        // of one size
}

// runBoth measures between emulated nodes here, and inside a node on launched
// processes. Each of these comes here again.
func (b *benchAlgorithms) runBoth(ctx context.Context, operand string, stdin io.Reader, stdout, stderr io.Writer) error {
	if slices.Contains(strings.Split(operand, ","), tasks.Barrier.String()) {
		return kit.Usagef("barrier: it has no algorithms to compare")
	}
	here := func(stdout, _ io.Writer) error { return b.measureLevel(ctx, operand, stdout) }
	if err := b.RunOnJob(ctx, stdout, stderr, here); err != nil || kit.IsLaunched() {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to launch it: %w", err)
	}
	var theirs bytes.Buffer
	out := stdout
	if b.asJSON {
		out = &theirs
	} else {
		fmt.Fprintln(stdout)
	}
	status, err := launch.Run(ctx, launch.Options{
		Ranks: b.ranks, Launcher: "local", Oversubscribe: true, NoPrefix: true, Stdin: "none",
		Program: append([]string{self, "algorithms"}, b.args...),
	}, stdin, out, stderr)
	if err != nil {
		return kit.WithStatus(err, status)
	}
	if !b.asJSON {
		return nil
	}
	var more struct{ Results []row }
	if err := json.Unmarshal(theirs.Bytes(), &more); err != nil {
		return fmt.Errorf("results of the launched ranks: %w", err)
	}
	return kit.WriteJSON(stdout, map[string]any{"results": append(b.rows, more.Results...)})
}

// measureLevel measures between emulated nodes, or, on launched processes, inside the
// node.
func (b *benchAlgorithms) measureLevel(ctx context.Context, operand string, stdout io.Writer) error {
	if err := b.Read(operand); err != nil {
		return err
	}
	t := b.Job.Topology()
	if !kit.IsLaunched() {
		return b.measureTable(ctx, operand, t.Level(t.Depth()-1), stdout)
	}
	err := b.measureTable(ctx, operand, t.Level(0), stdout)
	if err == nil && b.asJSON {
		err = kit.WriteJSON(stdout, map[string]any{"results": b.rows})
	}
	return err
}

// measureTable measures all algorithms of a level and prints a line for each.
func (b *benchAlgorithms) measureTable(ctx context.Context, operand string, level levels.Level, stdout io.Writer) error {
	colls, err := kit.ParseCollectives(operand)
	if err != nil {
		return err
	}
	if b.asJSON {
		stdout = io.Discard
	}
	fmt.Fprintf(stdout, "# level %v of %v; %d CPUs; p50 in µs\n", level, b.Job, runtime.NumCPU())
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	work := b.Work
	defer func() { b.Work = work }()
	for i, coll := range colls {
		b.Work = slices.DeleteFunc(slices.Clone(work), func(r tasks.Request) bool { return r.Coll != coll })
		if i == 0 {
			fmt.Fprintln(w, strings.Join(b.headCells(), "\t")+"\t")
		}
		kind := tasks.Kind{Symbol: level.Symbol, Op: tasks.Bcast}
		switch r := (tasks.Request{Coll: coll}); {
		case r.Blocks():
			kind.Op = coll
		case r.Reduces():
			kind.Op = tasks.Reduce
		}
		for _, choice := range b.listChoices(kind.Op, level) {
			if err := b.measureOne(ctx, kind, choice); err != nil {
				return fmt.Errorf("%v=%v: %w", kind, choice, err)
			}
			cells := []string{coll.String(), kind.String(), choice.String()}
			for _, r := range b.Results.All {
				cells = append(cells, fmt.Sprintf("%.1f", r.P50))
				b.rows = append(b.rows, row{level.String(), choice.String(), kind.String(), r})
			}
			fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
		}
	}
	return w.Flush()
}

// headCells returns the first line of a table.
func (b *benchAlgorithms) headCells() []string {
	cells := []string{"collective", "task", "algorithm"}
	for _, r := range b.Work {
		cells = append(cells, tasks.FormatBytes(r.Bytes()))
	}
	return cells
}

// listChoices returns the algorithms for an operation that work on a level.
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
