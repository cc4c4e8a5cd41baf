package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/launch"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchAlgorithms is bench algorithms.
type benchAlgorithms struct {
	benchColl
	ranks int
	args  []string // as given, for the ranks that are launched
}

func (a app) benchAlgorithmsCommand() *cobra.Command {
	b := &benchAlgorithms{benchColl: benchColl{reg: a.registry, json: true}}
	c := &cobra.Command{
		Use:   "algorithms [OP,OP]",
		Short: "Measure each submodule's algorithms side by side",
		Long: `Measures bcast and reductions with each algorithm of each submodule in turn: between
nodes on goroutine ranks over an emulated link, and inside a node on processes
that it launches. For bcast the algorithm does the bcast of that level, for
allreduce and reduce the reduction, for gather and allgather the same between its
groups; everything else is as the built-in rule has it. Cells
are the median over samples of the slowest rank's time per call, in µs, as bench
coll measures it.`,
		Example: `  tierflow bench algorithms
  tierflow bench algorithms bcast --bytes 64KiB,4MiB --time 1s`,
		Args: cobra.MaximumNArgs(1),
		RunE: interruptible(func(c *cobra.Command, args []string) error {
			operand := "bcast,allreduce"
			if len(args) == 1 {
				operand = args[0]
			}
			b.args = append([]string{operand}, "--bytes", b.bytes, "--time", b.effort.time.String())
			return b.runBoth(c.Context(), operand, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		}),
	}
	b.topoFlag(c, "4x2")
	b.requestFlags(c, "4KiB,64KiB,1MiB,16MiB", "sizes of a rank's buffer")
	c.Flags().StringVar(&b.link, "link", "", linkText+" (default "+defaultLink+" if there are nodes)")
	c.Flags().DurationVar(&b.effort.time, "time", 100*time.Millisecond, "time for each size and algorithm")
	c.Flags().IntVar(&b.ranks, "ranks", 4, "processes of the node")
	return c
}

// runBoth measures between emulated nodes here, and inside a node on launched
// processes, each of which comes here again.
func (b *benchAlgorithms) runBoth(ctx context.Context, operand string, stdin io.Reader, stdout, stderr io.Writer) error {
	if isLaunched() {
		return b.inNode(ctx, operand, stdout, stderr)
	}
	if err := b.read(operand); err != nil {
		return err
	}
	t := b.job.Topology()
	if err := b.table(ctx, operand, t.Level(t.Depth()-1), stdout); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to launch it: %w", err)
	}
	fmt.Fprintln(stdout)
	status, err := launch.Run(ctx, launch.Options{
		Ranks: b.ranks, Launcher: "local", Oversubscribe: true, NoPrefix: true,
		Program: append([]string{self, "bench", "algorithms"}, b.args...),
	}, stdin, stdout, stderr)
	if err != nil {
		return &statusError{err, status}
	}
	return nil
}

// inNode is what each launched process does.
func (b *benchAlgorithms) inNode(ctx context.Context, operand string, stdout, stderr io.Writer) error {
	j, stdout, _, err := joinJob(ctx, stdout, stderr)
	if err != nil {
		return err
	}
	b.job = j
	if err = b.readRest(operand); err == nil {
		err = b.table(ctx, operand, j.Topology().Level(0), stdout)
	}
	if cerr := j.world.Close(); err == nil {
		err = cerr
	}
	return err
}

// table measures all algorithms of a level and prints a line for each.
func (b *benchAlgorithms) table(ctx context.Context, operand string, level levels.Level, stdout io.Writer) error {
	colls, err := parseCollectives(operand)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "# level %v of %v; %d CPUs; p50 in µs\n", level, b.job, runtime.NumCPU())
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"collective", "task", "algorithm"}
	work := b.work
	for _, r := range work {
		if r.Coll == colls[0] {
			head = append(head, tasks.FormatBytes(r.Bytes()))
		}
	}
	fmt.Fprintln(w, strings.Join(head, "\t")+"\t")
	for _, coll := range colls {
		op := tasks.Bcast
		switch r := (tasks.Request{Coll: coll}); {
		case r.Reduces():
			op = tasks.Reduce
		case r.Blocks():
			op = coll
		}
		b.work = slices.DeleteFunc(slices.Clone(work), func(r tasks.Request) bool { return r.Coll != coll })
		for _, choice := range b.choices(op, level) {
			kind := tasks.Kind{Symbol: level.Symbol, Op: op}
			cells, err := b.measureOne(ctx, kind, choice)
			if err != nil {
				return fmt.Errorf("%v=%v: %w", kind, choice, err)
			}
			fmt.Fprintln(w, strings.Join(append([]string{coll.String(), kind.String(), choice.String()}, cells...), "\t")+"\t")
		}
	}
	b.work = work
	return w.Flush()
}

// choices lists the algorithms for an operation that can work on a level.
func (b *benchAlgorithms) choices(op tasks.Collective, level levels.Level) []tasks.Choice {
	var all []tasks.Choice
	for _, s := range b.reg {
		if s.Reach() == submodules.SharedNode && level.Symbol != levels.NodeSymbol {
			continue
		}
		for _, a := range s.Algorithms() {
			if a.Does(op) {
				all = append(all, tasks.Choice{Submodule: s.Name(), Algorithm: a.Name})
			}
		}
	}
	return all
}

// measureOne measures all sizes with one algorithm.
func (b *benchAlgorithms) measureOne(ctx context.Context, kind tasks.Kind, c tasks.Choice) ([]string, error) {
	plan := tasks.Plan{Shape: tasks.Han}.Set(kind.String(), c)
	b.results = results{out: io.Discard, json: true}
	if err := runRanks(ctx, b.job, []string{plan.String()}, b.rank); err != nil {
		return nil, err
	}
	var cells []string
	for _, r := range b.results.all {
		if r.Wrong > 0 {
			return nil, fmt.Errorf("%d wrong elements of %s", r.Wrong, tasks.FormatBytes(r.Bytes))
		}
		cells = append(cells, fmt.Sprintf("%.1f", r.P50))
	}
	return cells, nil
}
