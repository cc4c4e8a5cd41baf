// Package learn is the laboratory's command to compare ways to learn the fastest plans. It
// records the times of all plans once, and lets each way measure from the recording.
package learn

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/submodules"
)

// learning is the command with its flags.
type learning struct {
	kit.Problem
	trial
	registry  submodules.Registry
	file, op  string
	record    string
	replay    []string
	catalogue bool
	plans     int
	learned   string
	json      bool
	svg       string
}

// Command returns learn.
func Command(reg submodules.Registry) *cobra.Command {
	u := &learning{registry: reg}
	c := &cobra.Command{
		Use:   "learn",
		Short: "Compare ways to learn which plans are fast, on recorded measurements",
		Long: `--record simulates all that could be measured of a collective, and keeps what each
measurement takes: by MPICH's own algorithms on all machines of powers of two up to
--topo, or with --catalogue by all plans on --topo. One size in five is drawn, and no
power of two.

--replay lets each way to learn measure from recorded sets. It prints after how many
seconds of measuring the mean slowdown of its choices was at most 1.03, and when the
way would stop by itself: the slowdown then over powers of two, over other sizes, and
the worst. tierflow tune goes on and measures what would be chosen: how long that takes
and the worst then follow. A way ends after half of what all measurements take. random draws points
(Hunold and others, CLUSTER 2020). paper is ACCLAiM:
the largest variance is next, plans are numbers. gain takes the point from which most
is hoped to be gained for its time, and knows plans by their words. learn knows the
machine's prices beside that, and is what tierflow tune does; an assumed prior is the
prices of a machine with Gigabit Ethernet that nobody has measured.`,
		Example: `  tierflow-lab learn --record bcast.json --topo 64x8 --op bcast
  tierflow-lab learn --replay bcast.json,reduce.json --svg slowdown.svg
  tierflow-lab peers --topo 4x1 --libraries mpich --rules --record mpich.json
  tierflow-lab learn --replay mpich.json --learned learned.json`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if (u.record == "") == (len(u.replay) == 0) {
				return kit.Usagef("give either --record FILE or --replay FILES")
			}
			if u.record != "" {
				return u.runRecord(c)
			}
			return u.runReplay(c)
		}),
	}
	u.AddTopoFlag(c, "16x4")
	f := c.Flags()
	f.StringVar(&u.record, "record", "", "file to record a set in")
	f.StringVar(&u.file, "simulate", "assumed", kit.SimulateText)
	f.StringVar(&u.op, "op", "bcast", "collective to record")
	f.StringVar(&u.Bytes, "bytes", "8:1MiB:x2", "sizes to record; odd ones are added")
	f.BoolVar(&u.catalogue, "catalogue", false, "record all plans on the whole machine, not those of MPICH on its parts")
	f.IntVar(&u.plans, "plans", 0, "with --catalogue: so many plans of it, drawn (default all)")
	f.StringSliceVar(&u.replay, "replay", nil, "files of recorded sets, or decision tables with measurements")
	f.StringSliceVar(&u.ways, "ways", nil, "ways that learn to replay: "+strings.Join(wayNames(), "; ")+" (default all)")
	f.Uint64Var(&u.seed, "seed", 1, "first of the seeds")
	f.IntVar(&u.seeds, "seeds", 3, "of how many seeds results are the means")
	f.IntVar(&u.racks, "racks", 0, "racks of the nodes, as many in each: ways that learn measure machines in different racks at one time (default one machine at a time)")
	f.StringVar(&u.learned, "learned", "", "with one decision table to replay: write the table that learn makes of the measurements for which it asks")
	f.BoolVar(&u.json, "json", false, "print JSON")
	f.StringVar(&u.svg, "svg", "", "draw slowdown over collection time to a file")
	return c
}

func (u *learning) runRecord(c *cobra.Command) error {
	s, err := u.ReadSimulated(u.file)
	if err != nil {
		return err
	}
	coll, err := kit.ParseCollective(u.op)
	if err != nil {
		return err
	}
	sizes, err := kit.ParseSizes(u.Bytes)
	if err != nil {
		return kit.Usagef("--bytes: %w", err)
	}
	if u.plans < 0 || u.plans > 0 && !u.catalogue {
		return kit.Usagef("--plans %d: from 1 on, with --catalogue", u.plans)
	}
	r := recorder{registry: u.registry, simulated: s, coll: coll, sizes: sizes, all: u.catalogue, most: u.plans, seed: u.seed, stderr: c.ErrOrStderr()}
	set, err := r.record(c.Context())
	if err != nil {
		return err
	}
	data, err := set.encode()
	if err != nil {
		return err
	}
	return kit.WriteOutput(c.OutOrStdout(), u.record, data)
}

func (u *learning) runReplay(c *cobra.Command) error {
	if u.seeds < 1 {
		return kit.Usagef("--seeds %d: from 1 on", u.seeds)
	}
	if u.racks < 0 {
		return kit.Usagef("--racks %d: from 0 on", u.racks)
	}
	for _, name := range u.ways {
		if !slices.Contains(wayNames(), name) {
			return kit.Usagef("--ways %s: allowed are %s", name, strings.Join(wayNames(), ", "))
		}
	}
	var all []setResult
	for _, name := range u.replay {
		sets, err := readSets(name)
		if err != nil {
			return kit.Usagef("--replay: %w", err)
		}
		if u.learned != "" {
			return u.writeLearned(c, sets)
		}
		for _, s := range sets {
			title := filepath.Base(name)
			if s.of != nil {
				title += ", " + s.Collective
			}
			one, err := compare(c.Context(), s, title, u.trial)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
	}
	if err := labkit.Print(c.OutOrStdout(), u.json, all, labkit.Right, func(w io.Writer) { printAll(w, all) }); err != nil {
		return err
	}
	return labkit.Draw(c.OutOrStdout(), u.svg, figure(all))
}

// writeLearned writes the table of a search by method learn.
func (u *learning) writeLearned(c *cobra.Command, sets []*recordedSet) error {
	if len(u.replay) != 1 || sets[0].of == nil {
		return kit.Usagef("--learned %s: --replay has %s; allowed is one decision table with measurements", u.learned, strings.Join(u.replay, ","))
	}
	made, err := learnTable(c.Context(), sets, u.seed)
	if err != nil {
		return err
	}
	data, err := made.Encode()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %d entries, %d of %d measurements, %.2f s\n", u.learned, len(made.Entries), made.Provenance.Configurations, made.Provenance.Planned, made.Provenance.Seconds)
	return kit.WriteOutput(c.OutOrStdout(), u.learned, data)
}

// printAll writes a line for each way and set.
func printAll(w io.Writer, all []setResult) {
	fmt.Fprintln(w, "set\tway\ts to 1.03\ts at stop\tslowdown\tof odd\tworst\tmeasurements\ts checked\tworst\t")
	for _, one := range all {
		for _, way := range one.Ways {
			first := "-"
			if way.To >= 0 {
				first = fmt.Sprintf("%.4g", way.To)
			}
			checked := "\t"
			if way.Checked > 0 {
				checked = fmt.Sprintf("%.4g\t%.3f", way.Checked, way.CheckedWorst)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%.4g\t%.3f\t%.3f\t%.3f\t%.0f\t%s\t\n", one.Set, way.Name, first, way.Seconds, way.Slowdown, way.Odd, way.Worst, way.Measurements, checked)
		}
	}
}
