package drawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// drawing is the command drawn.
type drawing struct {
	judging
	seed  uint64
	cells int
	show  int
	json  bool

	isUnequal bool // nodes have different numbers of ranks
}

// Command returns drawn.
func Command(reg submodules.Registry) *cobra.Command {
	d := &drawing{judging: judging{reg: reg}}
	c := &cobra.Command{
		Use:   "drawn",
		Short: "Judge what is chosen on machines drawn from a seed",
		Long: `Draws machines, topologies, collectives and sizes from a seed: wires of 0.1 to 400 Gbit/s,
a latency of 0.7 to 60 µs, memory that takes 0.03 to 0.3 ns to copy a byte, 2 to 64 nodes of
1 to 16 ranks, 64 B to 16 MiB in each rank's buffer. For each it simulates the plan that is
chosen on that machine, the built-in rule's, and all of the catalogue, and says how many times
as long as the best of them the first two take.

Cells whose chosen plan has more steps than --steps are passed over, and so are other plans
with 8 times as many. The ten worst cells are printed as commands.`,
		Example: `  tierflow-lab drawn --seed 7 --cells 300
  tierflow-lab drawn --seed 7 --show 17 > 17.json`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			switch {
			case d.cells < 1:
				return kit.Usagef("--cells %d: give 1 or more", d.cells)
			case d.steps < 1:
				return kit.Usagef("--steps %d: give 1 or more", d.steps)
			case c.Flags().Changed("show"):
				return d.write(c.OutOrStdout())
			}
			return d.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		}),
	}
	f := c.Flags()
	f.Uint64Var(&d.seed, "seed", 1, "what is drawn from")
	f.IntVar(&d.cells, "cells", 100, "how many cells to judge")
	f.Int64Var(&d.steps, "steps", 200_000, "most steps of a chosen plan")
	f.IntVar(&d.show, "show", 0, "print the machine of this cell, and judge nothing")
	f.BoolVar(&d.isUnequal, "unequal", false, "draw how many ranks each node has, in place of one number for all")
	f.BoolVar(&d.json, "json", false, "print all cells as JSON")
	return c
}

// write prints the machine of a cell.
func (d *drawing) write(stdout io.Writer) error {
	if d.show < 0 {
		return kit.Usagef("--show %d: cells are numbered from 0 on", d.show)
	}
	c, err := draw(d.seed, uint64(d.show), d.isUnequal)
	if err != nil {
		return err
	}
	data, err := c.machine.Format()
	if err != nil {
		return err
	}
	return kit.WriteOutput(stdout, "", data)
}

func (d *drawing) run(ctx context.Context, stdout, stderr io.Writer) error {
	bar := kit.NewProgress(stderr, "judging", "")
	defer bar.Finish()
	var all []verdict
	passed := 0
	for n := uint64(0); len(all) < d.cells; n++ {
		bar.Show(int64(len(all)), int64(d.cells))
		c, err := draw(d.seed, n, d.isUnequal)
		if err != nil {
			return err
		}
		v, err := d.judge(ctx, c)
		switch {
		case errors.Is(err, errLarge):
			passed++
			continue
		case err != nil:
			return fmt.Errorf("cell %d: %w", n, err)
		}
		all = append(all, *v)
	}
	bar.Finish()
	return labkit.Print(stdout, d.json, all, labkit.Right, func(w io.Writer) { d.print(w, all, passed) })
}

// mostWorst is how many cells are printed.
const mostWorst = 10

// print writes the ratios by collective, and the worst cells as commands.
func (d *drawing) print(w io.Writer, all []verdict, passed int) {
	left := 0
	for i := range all {
		left += all[i].LeftOut
	}
	fmt.Fprintf(w, "%d cells of seed %d; %d passed over, %d plans left out\n", len(all), d.seed, passed, left)
	fmt.Fprintln(w, "\tcells\tchosen: mean\tabove 1.10\tworst\trule: mean\tabove 1.10\tworst\t")
	row := func(name string, some []verdict) {
		if len(some) == 0 {
			return
		}
		c, r := summarize(some, func(v *verdict) float64 { return v.Chosen.Ratio }), summarize(some, func(v *verdict) float64 { return v.Rule.Ratio })
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.0f%%\t%.2f\t%.3f\t%.0f%%\t%.2f\t\n", name, len(some), c.mean, 100*c.above, c.worst, r.mean, 100*r.above, r.worst)
	}
	row("all", all)
	for _, coll := range collectives {
		row(coll.String(), slices.DeleteFunc(slices.Clone(all), func(v verdict) bool { return v.Collective != coll.String() }))
	}
	slices.SortStableFunc(all, func(a, b verdict) int { return cmp.Compare(b.Chosen.Ratio, a.Chosen.Ratio) })
	fmt.Fprintf(w, "\nThe worst:\n")
	unequal := ""
	if d.isUnequal {
		unequal = " --unequal"
	}
	for i := range all[:min(len(all), mostWorst)] {
		v := &all[i]
		fmt.Fprintf(w, "%.3f  %s\n   of  %s\n", v.Chosen.Ratio, v.Chosen.Plan, v.Best.Plan)
		fmt.Fprintf(w, "    tierflow-lab drawn --seed %d%s --show %d > %d.json\n", d.seed, unequal, v.Cell, v.Cell)
		fmt.Fprintf(w, "    tierflow simulate %s --topo %s --bytes %s --machine %d.json --plan all\n", v.Collective, v.Topo, tasks.FormatBytes(v.Bytes), v.Cell)
	}
}

// summary is of the ratios of some cells.
type summary struct {
	mean, worst float64
	above       float64 // share above 1.10
}

func summarize(all []verdict, of func(*verdict) float64) (s summary) {
	for i := range all {
		x := of(&all[i])
		s.mean += x / float64(len(all))
		s.worst = max(s.worst, x)
		if x > 1.10 {
			s.above += 1 / float64(len(all))
		}
	}
	return s
}
