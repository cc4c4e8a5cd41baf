package tune

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/planner/learn"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
)

// Command returns tune with its subcommands.
func Command(reg submodules.Registry) *cobra.Command {
	u := &Tuning{Registry: reg}
	c := &cobra.Command{
		Use:   "tune [-o FILE]",
		Short: "Measure, search and write a decision table",
		Long: `Looks for the fastest plan of each collective and size on this machine and writes
a decision table, which planner.Options.Table or TIERFLOW_TABLE then name. A launched job
without -o keeps it in the user's cache folder, where later jobs on such hosts find it.

Methods (--method), as in HAN, section III-C:
` + methodsHelp() + `
The built-in rule's plan always competes. --races says for what the tasks methods run
whole collectives: auto, where predictions don't tell which plan is the fastest, and they
learn from it; never, for the chosen plans alone. These always run, beside the rule's.

Method learn follows ACCLAiM. --learn says how: by default the next measurement is that
from which most is hoped to be gained for its time, plans are known by their words, and
what is learned is how wrong their prices are. variance picks where the forest is least
sure, as the paper does; bootstrap takes that from the jackknife after bootstrap; numbers
knows plans by these alone; no-prior leaves prices out; cost-blind ignores what
measurements take; random draws. --why prints a line for each measurement.

A measurement ends when the 95% interval of the mean is within 2.5% of it, or after
--time, the same for all methods. --budget bounds the whole search: what is not
measured by then is left out, in an order that leaves no kind of plan out.
Interrupted (Ctrl-C), it writes what it has; --resume goes on from there, and also
adds another machine to a table. All ranks tune together: those of a launched job,
or goroutines on --topo. Emulated links of goroutines pass messages first come, first
served: trees in which a rank sends to several nodes at once look faster there than on a
network. Tune processes on the machine, or --simulate, if such trees are in question.

--simulate takes the times from a simulation of a machine that a file describes, so
--topo may have thousands of ranks. The table says so: its times are called simulated,
and --resume does not mix them with measured ones.

--regime says how calls follow each other when plans are compared. A single call is that
of a program that computes in between: all ranks have written their buffers and begin at
one time. Calls back to back follow each other for 5 ms, from one root after the other:
the next one may hide the end of a call. A table has one regime and names it; tables that
name none are of single calls. Tasks are timed in single runs in both regimes. Simulated
calls are single.

--machines, or --nodes and --ppn, tune for parts of the ranks too, one after the other, as
HAN's table I has it. The table then serves machines between them by interpolation, and
tierflow plan says so. Odd numbers tell what powers of two don't. Method learn learns them
all together: what one machine takes tells what others do. Where the topology has racks or
sites, machines are measured at one time, none of them in a rack of another (ACCLAiM,
section IV-D); --alone doesn't.

--uneven 8 tunes for blocks that differ, the largest of which is 8 times the mean, as an
Alltoallv or a Gatherv has them: the largest, then each half of what is left. Which messages
of an exchange leave at once (eager=) is searched then. The table's entries hold for blocks
that differ as much. Methods measure whole collectives then; learn and models don't take it.

--profile tunes for the calls that a program has made, and for nothing else. A job with
TIERFLOW_PROFILE=calls.json, or planner.Options.Profile, writes them when it ends.
--break-even says after how many such calls tuning has paid.

Sizes go from --min to --max by factors of four; every fifth is one and a half times
that, because not all messages are powers of two. --bytes lists others in their place.`,
		Example: `  tierflow tune -o table.json --topo 4x2
  tierflow tune -o table.json --topo 2x2 --ops bcast --method exhaustive --budget 2m
  tierflow tune -o table.json --topo 64x12 --simulate machine.json --ops bcast
  tierflow tune -o table.json --topo 8x2 --nodes 1:8 --ppn 1,2 --ops bcast
  tierflow tune -o table.json --topo 4x16x1x2 --simulate assumed --method learn --nodes 4,8,16,32,64 --ppn 1,2 --ops bcast
  tierflow tune -o table.json --topo 4x1 --ops allreduce --bytes 16KiB,64KiB
  tierflow tune -o table.json --topo 8x1 --ops alltoall --uneven 4 --bytes 4KiB,64KiB
  tierflow tune -o loop.json --topo 4x1 --ops allreduce --regime back-to-back
  tierflow run -n 8 -- tierflow tune -o table.json --resume
  tierflow run -n 8 -- tierflow tune --profile calls.json --break-even
  TIERFLOW_TABLE=table.json tierflow plan allreduce --bytes 100000 --topo 3x2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.Usagef("unknown command %q; known is check; to tune give -o FILE and no argument", args[0])
			}
			return nil
		},
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			return u.RunAnywhere(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), u.runTune)
		}),
	}
	u.addTuneFlags(c)
	c.AddCommand(checkCommand(reg))
	return c
}

// addTuneFlags adds the flags of tune itself.
func (u *Tuning) addTuneFlags(c *cobra.Command) {
	u.AddFlags(c)
	u.AddSizeFlags(c, "4B", "16MiB")
	f := c.Flags()
	f.IntVar(&u.uneven, "uneven", 0, "tune for blocks that differ, the largest of which is so many times the mean: a power of two below the ranks; of --ops those that have such blocks")
	f.StringVar(&u.machines, "machines", "", "machines to tune for, of the first nodes and ranks: 4x2,3x2,4x1 (default all ranks)")
	f.StringVar(&u.nodes, "nodes", "", "with --ppn in place of --machines: numbers of nodes: 1:8 or 2,3,4 (default all)")
	f.StringVar(&u.ppn, "ppn", "", "with --nodes: numbers of ranks a node (default all)")
	f.StringVarP(&u.output, "output", "o", "", "file to write the table to (default of a launched job: where jobs find it)")
	f.StringVar(&u.method, "method", tune.TasksPruned.String(), "how to search")
	f.StringVar(&u.learn, "learn", "", "how method learn learns: "+strings.Join(learn.OptionWords(), ", "))
	f.BoolVar(&u.why, "why", false, "say what method learn measures, and why")
	f.BoolVar(&u.alone, "alone", false, "with --method learn and --machines: measure on one machine at a time")
	f.StringVar(&u.races, "races", tune.RacesAuto.String(), "when plans run in turns: auto or never")
	kit.CompleteWords(c, "method", kit.Names(tune.Methods())...)
	kit.CompleteWords(c, "races", "auto", "never")
	kit.CompleteList(c, "learn", learn.OptionWords())
	f.DurationVar(&u.Budget, "budget", 0, "time for the whole search (default no limit)")
	u.AddSimulateFlag(c)
	f.StringVar(&u.profile, "profile", "", "tune for what a program has called on all these ranks, by a file that TIERFLOW_PROFILE named; equal on all hosts")
	f.BoolVar(&u.breakEven, "break-even", false, "say after how many of the profile's calls tuning pays")
	f.BoolVar(&u.resume, "resume", false, "keep what the file has, and add to it")
	f.BoolVar(&u.JSON, "json", false, "print a summary as JSON")
}

// methodsHelp lists and explains the methods.
func methodsHelp() string {
	var b strings.Builder
	for _, m := range tune.Methods() {
		lines := strings.ReplaceAll(m.About(), "\n", "\n"+strings.Repeat(" ", methodColumn))
		fmt.Fprintf(&b, "  %-*s%s\n", methodColumn-2, m, lines)
	}
	return b.String()
}

// methodColumn is the first column of the methods' texts.
const methodColumn = 25

// runTune tunes on one rank.
func (u *Tuning) runTune(ctx context.Context, r *Rank) error {
	own := *u // goroutine ranks share u
	u = &own
	m, err := tune.ParseMethod(u.method)
	if err != nil {
		return kit.Usagef("--method: %w", err)
	}
	if u.when, err = tune.ParseRaceWhen(u.races); err != nil {
		return kit.Usagef("--races: %w", err)
	}
	if u.Learn, err = learn.ParseOptions(u.learn); err != nil {
		return kit.Usagef("--learn: %w", err)
	}
	if m != tune.Learn && (u.learn != "" || u.why) {
		return kit.Usagef("--learn and --why are of --method learn; it is %v", m)
	}
	if u.output == "" {
		if r.Comm == nil || !kit.IsLaunched() {
			return kit.Usagef("no file for the table; give -o FILE: only launched jobs find one that is kept")
		}
		if u.output = raw.TableFile(r.Comm); u.output == "" && r.IsFirst() {
			return errors.New("no file for the table, and no cache folder to keep it in; give -o FILE")
		}
		u.keeps = true
	}
	made, err := u.loadTable(ctx, r)
	if err != nil {
		return err
	}
	save := func(t *table.Table) error {
		if u.keeps {
			return raw.KeepTable(r.Comm, t)
		}
		data, err := t.Encode()
		if err != nil {
			return err
		}
		return kit.WriteOutput(r.Stdout, u.output, data)
	}
	machines, err := u.readMachines(r.Topology)
	if err != nil {
		return err
	}
	if u.alone && (m != tune.Learn || len(machines) == 0) {
		return kit.Usagef("--alone is of --method learn on some --machines, which measures on several of them at one time")
	}
	if m == tune.Learn && len(machines) > 0 {
		err = u.learnMachines(ctx, r, machines, made, save)
	} else {
		err = u.eachMachine(ctx, r, machines, func(ctx context.Context, r *Rank) error {
			return u.tuneMachine(ctx, r, m, made, save)
		})
	}
	if err != nil && !errors.Is(err, tune.ErrInterrupted) {
		return err
	}
	if !r.IsFirst() {
		return nil
	}
	if err := save(made); err != nil {
		return err
	}
	if err := u.printSummary(r, made); err != nil {
		return err
	}
	return u.explainEnd(err, r, &made.Provenance)
}

// tuneMachine tunes for a rank's machine, one of some or all ranks.
func (u *Tuning) tuneMachine(ctx context.Context, r *Rank, m *tune.Method, made *table.Table, save func(*table.Table) error) error {
	u.describeOrigin(made, r, m)
	before := made.Provenance
	_, err := u.RunSearch(ctx, r, m, u.when, made, save)
	p := &made.Provenance
	p.Seconds += before.Seconds
	if len(u.machines)+len(u.nodes)+len(u.ppn) > 0 {
		p.Configurations, p.Planned = p.Configurations+before.Configurations, p.Planned+before.Planned
	}
	return err
}

// explainEnd returns the error of a search ended early: by a signal, or by a budget too short for
// one measurement. Another budget's end is no error.
func (u *Tuning) explainEnd(err error, r *Rank, p *table.Provenance) error {
	switch {
	case err == nil:
		return nil
	case r.Asked.Err() != nil:
		return fmt.Errorf("%w; --resume goes on", err)
	case p.Configurations == 0:
		return fmt.Errorf("--budget %v is less than it takes to list what there is to measure, and to make the first measurement: give more time, or less to search (--ops, --bytes, --shapes)", u.Budget)
	}
	return nil
}

// Summary is the output of tune.
type Summary struct {
	File         string       `json:"file"`
	Method       string       `json:"method"`
	Measurements int          `json:"measurements"`
	Planned      int          `json:"planned"`
	Rejected     table.Counts `json:"rejected"`
	Seconds      float64      `json:"seconds"`
	Entries      int          `json:"entries"`
	Violations   []string     `json:"violations"`
	BreakEven    *BreakEven   `json:"break_even,omitempty"`
	Left         []string     `json:"left_out,omitempty"` // calls of the profile
}

func (u *Tuning) printSummary(r *Rank, t *table.Table) error {
	p := t.Provenance
	s := Summary{
		File: u.output, Method: p.Method, Measurements: p.Configurations, Planned: p.Planned, Rejected: p.Rejected, Seconds: p.Seconds,
		Entries: len(t.Entries), Violations: []string{},
	}
	if u.breakEven {
		even := u.calls.breakEven(t, r.Topology, u.LinksOf(r))
		s.BreakEven = &even
	}
	if u.calls != nil {
		s.Left = u.calls.left
	}
	for _, v := range tune.Violations(t) {
		s.Violations = append(s.Violations, v.String())
	}
	if u.JSON {
		return kit.WriteJSON(r.Stdout, s)
	}
	out := r.Stdout
	if u.output == "-" {
		out = r.Stderr
	}
	fmt.Fprintf(out, "%s: %d entries by %s, %d of %d measurements in %.1f s\n", s.File, s.Entries, s.Method, s.Measurements, s.Planned, s.Seconds)
	if r.Reuse.Tasks > 0 {
		fmt.Fprintf(out, "tasks: %v\n", r.Reuse)
	}
	if text := SpentText(r.Spent.All); text != "" {
		fmt.Fprintf(out, "measured: %s\n", text)
	}
	if r.together > 0 {
		fmt.Fprintf(out, "at one time: %.2f on average\n", r.together)
	}
	if len(s.Rejected) > 0 {
		fmt.Fprintf(out, "not measured: %s\n", tune.RejectionText(s.Rejected))
	}
	for _, v := range s.Violations {
		fmt.Fprintf(out, "guideline: %s\n", v)
	}
	if u.calls != nil {
		u.calls.printLeft(out, u.profile)
	}
	if s.BreakEven != nil {
		s.BreakEven.print(out, u.profile)
	}
	return nil
}
