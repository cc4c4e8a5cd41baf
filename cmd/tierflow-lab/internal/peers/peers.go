package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// benchPeers is the command peers.
type benchPeers struct {
	site
	topo       string
	rate       string
	congestion string
	ops        string
	bytes      string
	time       time.Duration
	sweep      time.Duration
	rounds     int
	libraries  string // beside tierflow
	program    string // --tierflow; empty: it is looked for
	keep       string // file for the times of the sweep; empty: none
	file       string // of a decision table to make rules of, without a sweep; empty: none
	json       bool

	command string // as it was called
	cells   cells
	others  []peer       // named by libraries
	from    *table.Table // of file
}

// Command returns the command peers.
func Command() *cobra.Command {
	b := &benchPeers{}
	c := &cobra.Command{
		Use:   "peers",
		Short: "Measure collectives beside other libraries",
		Long: `Measures the same collectives with tierflow, Open MPI, MPICH and Gloo, whichever of
them are installed, between processes on emulated nodes: network namespaces of this
machine, whose links have a rate. That takes root; one node (--topo 1x4) takes
neither root nor a link.

Drivers for the other libraries are built from sources that this command carries.
All measure as tierflow bench coll does: samples begin together, the slowest rank
counts, results are checked. Libraries take turns in rounds, so that what disturbs
the machine disturbs all of them; a cell is the median of its rounds' p50, with
the least and the largest, and how it compares with tierflow's of the same round: 2
is twice as long. What fails or takes too long is not tried again in later rounds.

Of Open MPI there are the defaults of coll/tuned and coll/han, each with waiting
ranks that yield the processor and that spin, and "forced", the best for each cell
of a sweep over algorithms, segment sizes and HAN's modules, with its command line.
"rules by tierflow" are made of what all algorithms of coll/tuned took in the sweep, by
tierflow rules from-table and convert --to ompi: one file for all cells. Then they are
proven: cells in which they are not faster than the library as it is, in each of five
turns, are left to its own decision. --record keeps what they are made of. With --rules
there are such of MPICH too, of its own algorithms.
Before that tierflow is tuned for the cells, by tierflow tune in the same place, and
measured with that decision table; "built-in rule" is without it. Then it is the tuned
one that others are compared with. --sweep 0 leaves out both: neither is told anything.
With --counts there is neither: blocks that differ aren't tuned for. --libraries names
what else is measured, and --spin=false leaves out Open MPI's ranks that spin: on few
processors they, and MPICH, take most of the time. With --measured there is "measured
machine" too, which is tierflow as it is by default: the first round measures the
machine, later ones read what was kept. All other rows of ours know of no machine.
The row "wire" is a plain one-way TCP stream of as many bytes. On one node tierflow
is measured with buffers of planner.Alloc too, from 4 KiB on, and on goroutine ranks.

With --single a sample is one call, as of tierflow bench coll --single. --bind core
binds each rank to a core of its own. Rounds launch all anew, so that least–largest is
the spread over launches.

With --noise each setting has two turns in a round: one undisturbed, and one in which
tierflow-lab disturb stops the rank in the middle at random moments. "slowdown" is
the mean time disturbed over the mean time undisturbed, and 1 / (1 - share) is what the
lost time alone makes of it. Open MPI's coll/adapt is then there for what it has.

With --json the output has all that the numbers depend on. Kept as
testdata/peers/results/NAME.json in tierflow's source tree it becomes a table of
testdata/peers/tables.md with make update.`,
		Example: `  tierflow-lab peers
  tierflow-lab peers --topo 4x1 --ops bcast --bytes 4MiB --rate 10gbit
  tierflow-lab peers --topo 1x4 --bytes 8,64KiB --sweep 0
  tierflow-lab peers --topo 1x2 --bytes 4,64KiB --single --bind core --rounds 6
  tierflow-lab peers --topo 1x4 --ops allgather --counts 0,0,100000,0`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if kit.IsLaunched() {
				return kit.Usagef("this process is a rank of a launched job; peers launches jobs itself")
			}
			if err := b.read(); err != nil {
				return err
			}
			b.command = c.CommandPath()
			for _, name := range []string{"topo", "rate", "congestion", "ops", "bytes", "counts", "time", "sweep", "rounds", "single", "noise", "noise-share", "bind", "libraries", "spin", "measured", "rules", "from"} {
				switch f := c.Flags().Lookup(name); {
				case f.Changed && f.Value.Type() == "bool":
					b.command += " --" + name + "=" + f.Value.String()
				case f.Changed:
					b.command += " --" + name + " " + f.Value.String()
				}
			}
			return b.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), b.compare)
		}),
	}
	b.topo, b.ops, b.bytes, b.time = "4x2", "bcast,allreduce", "1KiB,64KiB,4MiB", 500*time.Millisecond
	b.addFlags(c, "program tierflow to measure", libraryWords())
	b.addPeersFlags(c)
	return c
}

// addFlags adds the flags of both commands; sizes and times have their defaults already. The
// program is described, and words are the libraries.
func (b *benchPeers) addFlags(c *cobra.Command, program string, words []string) {
	f := c.Flags()
	f.StringVar(&b.topo, "topo", b.topo, "nodes and ranks on each, such as "+b.topo)
	f.StringVar(&b.rate, "rate", "1gbit", "rate of each node's link: 100mbit, 1gbit, … or none")
	f.StringVar(&b.congestion, "congestion", "reno", "TCP congestion control of all nodes: reno, bbr, … as the kernel allows")
	f.StringVar(&b.ops, "ops", b.ops, "collectives: "+strings.Join(kit.Names(tasks.Requestable()), ", "))
	f.StringVar(&b.bytes, "bytes", b.bytes, "sizes of a rank's buffer, or block")
	f.DurationVar(&b.time, "time", b.time, "time for each size, library and round")
	f.IntVar(&b.rounds, "rounds", 3, "how often each library has its turn")
	f.StringVar(&b.program, "tierflow", "", "the "+program+" (default the one in this program's folder, or in PATH)")
	f.StringVar(&b.libraries, "libraries", strings.Join(words, ","), "other libraries to measure; empty: none")
	kit.CompleteList(c, "libraries", words)
	f.BoolVar(&b.json, "json", false, "print JSON")
}

// addPeersFlags adds the other flags of peers.
func (b *benchPeers) addPeersFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&b.counts, "counts", "", "elements of each rank's block, such as 1,0,3, in place of --bytes: of blocks that differ")
	f.DurationVar(&b.sweep, "sweep", 200*time.Millisecond, "time for each size and setting in the sweep of Open MPI, and ten times that of a measurement when tierflow is tuned; 0 for neither")
	f.BoolVar(&b.single, "single", false, "one call a sample, on buffers just written, in place of calls back to back")
	f.DurationVar(&b.noise.Lasting, "noise", 0, "measure everything again while a rank loses its processor at times, for so long each; with --sweep 0")
	f.Float64Var(&b.noise.Share, "noise-share", 0.1, "share of the time in which that rank has no processor; with --noise")
	f.StringVar(&b.bind, "bind", bindNone, "what each rank is bound to, by all launchers alike: none, or core on one node")
	kit.CompleteWords(c, "bind", bindNone, "core")
	f.BoolVar(&b.spin, "spin", true, "measure Open MPI with waiting ranks that spin too, beside ranks that yield the processor")
	f.BoolVar(&b.measured, "measured", false, "measure tierflow as it is by default too, on a machine that it measures and keeps ("+env.Machine+"="+planner.MachineAuto+")")
	f.StringVar(&b.keep, "record", "", "file to write with what the sweep of one library took, as a decision table for tierflow rules from-table")
	f.BoolVar(&b.rules, "rules", false, "sweep for rules of Open MPI and MPICH alone: tierflow is not tuned, HAN not tried, and nothing forced is measured in rounds")
	f.StringVar(&b.file, "from", "", "with --rules: make them of this decision table, which --record wrote, without a sweep")
}

// Bounds of --rounds and --topo: mistyped numbers must not make a run of days.
const (
	maxPeerRounds = 100
	maxPeerRanks  = 1024
)

// linkRate matches the rates of the cluster's script.
var linkRate = regexp.MustCompile(`^([1-9][0-9]*[kmg]?bit|none)$`)

// congestionName matches names of congestion controls.
var congestionName = regexp.MustCompile(`^[a-z0-9_]{1,15}$`)

// read checks all arguments.
func (b *benchPeers) read() error {
	t, err := levels.Parse(b.topo)
	if err != nil {
		return kit.Usagef("--topo: %w", err)
	}
	b.nodes = t.Nodes()
	b.perNode = t.Size() / b.nodes
	if b.topo != fmt.Sprintf("%dx%d", b.nodes, b.perNode) || t.Size() < 2 || t.Size() > maxPeerRanks {
		return kit.Usagef("--topo %s: other libraries' launchers are given nodes of equal size: such as 4x2 or 1x4, of 2 to %d ranks", b.topo, maxPeerRanks)
	}
	colls, err := kit.ParseCollectives(b.ops)
	if err != nil {
		return kit.Usagef("--ops: %w", err)
	}
	sizes, err := b.readSizes(colls, t.Size())
	if err != nil {
		return err
	}
	if !linkRate.MatchString(b.rate) {
		return kit.Usagef("--rate %s: want such as 100mbit, 1gbit or none", b.rate)
	}
	if !congestionName.MatchString(b.congestion) {
		return kit.Usagef("--congestion %s: want such as reno, bbr or cubic", b.congestion)
	}
	if b.bind != bindNone && (b.bind != bindCore || b.nodes > 1) {
		return kit.Usagef("--bind %s: want none, or on one node core: emulated nodes have the same processors", b.bind)
	}
	if b.time <= 0 || b.sweep < 0 || b.rounds < 1 || b.rounds > maxPeerRounds {
		return kit.Usagef("--time %v, --sweep %v, --rounds %d: a time above 0, a sweep of 0 or more, and 1 to %d rounds",
			b.time, b.sweep, b.rounds, maxPeerRounds)
	}
	if b.others, err = readLibraries(b.libraries); err != nil {
		return err
	}
	if b.file != "" {
		if !b.rules || b.sweep == 0 || b.keep != "" {
			return kit.Usagef("--from %s: only with --rules, and without --sweep 0 and --record", b.file)
		}
		if b.from, err = choose.LoadTable(b.file, all.Submodules()); err != nil {
			return kit.Usagef("--from: %w", err)
		}
	}
	if b.keep != "" && len(b.others) > 1 && b.rules {
		return kit.Usagef("--record %s: the sweep of one library; --libraries names %s", b.keep, b.libraries)
	}
	b.cells = cells{kit.Names(colls), sizes}
	return b.checkNoise()
}

// readSizes reads --bytes or --counts. The size of different blocks is the largest.
func (b *benchPeers) readSizes(colls []tasks.Collective, ranks int) ([]int64, error) {
	// The drivers' interfaces have ints, and all ranks' buffers must fit into memory together.
	most := int64(1<<30) / int64(ranks)
	if b.counts == "" {
		sizes, err := kit.ParseSizes(b.bytes)
		if err != nil {
			return nil, kit.Usagef("--bytes: %w", err)
		}
		for _, n := range sizes {
			if n < 4 || n%4 != 0 || n > most {
				return nil, kit.Usagef("--bytes %s: want a multiple of 4, the bytes of a float, and at most %s for %d ranks",
					tasks.FormatBytes(n), tasks.FormatBytes(most), ranks)
			}
		}
		return sizes, nil
	}
	pairs := 0
	for _, c := range colls {
		if !c.HasCounts() && !c.HasMatrix() {
			return nil, kit.Usagef("--counts: %v has no blocks that differ", c)
		}
		if c.HasMatrix() {
			pairs++
		}
	}
	if pairs > 0 && pairs < len(colls) {
		return nil, kit.Usagef("--counts: %v takes a row for each rank, the others one; measure them apart", tasks.Alltoall)
	}
	what, floats, largest, err := b.readCounts(ranks, pairs > 0)
	if err != nil {
		return nil, kit.Usagef("--counts: %w", err)
	}
	if floats < 1 || floats > most/4 {
		return nil, kit.Usagef("--counts: %d %s; want at least 1 and at most %d for %d ranks", floats, what, most/4, ranks)
	}
	b.sweep = 0
	return []int64{4 * largest}, nil
}

// readCounts reads --counts of ranks, or of pairs of ranks: floats in a buffer and in the largest block.
func (b *benchPeers) readCounts(ranks int, pairs bool) (what string, floats, largest int64, err error) {
	if pairs {
		m, err := kit.ParseMatrix(b.counts, ranks)
		if err != nil {
			return "", 0, 0, err
		}
		return "floats of the busiest rank", m.Busiest(), m.Max(), nil
	}
	counts, err := kit.ParseCounts(b.counts, ranks)
	return "floats", counts.Sum(), counts.Max(), err
}

// checkNoise complains about --noise and --noise-share.
func (b *benchPeers) checkNoise() error {
	if b.noise.Lasting == 0 {
		return nil
	}
	if err := b.noise.Check("noise", "noise-share"); err != nil {
		return err
	}
	if b.sweep > 0 {
		return kit.Usagef("--noise compares libraries as they are: give --sweep 0 too")
	}
	return nil
}

// run sets up the place of a comparison, and takes it down.
func (b *benchPeers) run(ctx context.Context, stdout, stderr io.Writer, compare func(ctx context.Context, p *place, stdout, notes io.Writer) error) (err error) {
	notes := stdout
	if b.json {
		notes = stderr
	}
	p, err := b.enter(ctx, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.leave()) }()
	return compare(ctx, p, stdout, notes)
}

// compare tunes and sweeps, and then measures in rounds.
func (b *benchPeers) compare(ctx context.Context, p *place, stdout, notes io.Writer) error {
	t := b.newTable(p)
	fmt.Fprintf(notes, "# %s: %d processes on %d node%s, rate %s, congestion control %s; %d CPUs\n",
		b.topo, p.ranks(), b.nodes, kit.Plural(b.nodes), t.Rate, p.congestion, runtime.NumCPU())
	found, err := p.findPeers(ctx, b.others, t, notes)
	if err != nil {
		return err
	}
	run := p.measurer(ctx, t, notes)
	settings := p.defaultSettings(namesOf(found), b.cells)
	if b.noise.Lasting > 0 {
		settings, t.Noise = withNoise(settings, b.cells), &b.noise
	}
	if b.sweep > 0 && !b.rules {
		t.Tuning, err = p.tune(ctx, b.cells, b.sweep, notes)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			t.addFailure(notes, tuningItself, err)
		default: // first: others are compared with it
			settings = slices.Insert(settings, 0, setting{library: ourselves, variant: tuned, table: true})
		}
	}
	for _, l := range found {
		swept, err := b.sweepOf(l.name, p, t, notes, run)
		if err != nil {
			return err
		}
		settings = append(settings, swept...)
	}
	if err := b.runRounds(settings, p, t, notes, run); err != nil {
		return err
	}
	t.notePlans(notes)
	err = t.print(stdout, b.cells, b.json)
	t.noteRules(notes)
	return err
}

// measurer returns how settings are run: a failure of a job is the table's, an interrupt ends all.
func (p *place) measurer(ctx context.Context, t *peerTable, notes io.Writer) measurer {
	return func(s setting, c cells, each time.Duration) ([]peerRow, error) {
		rows, err := p.runSetting(ctx, s, c, each)
		if err != nil && ctx.Err() == nil {
			t.addFailure(notes, s, err)
		}
		return rows, context.Cause(ctx)
	}
}

// newTable returns a table without rows, but with all facts on which its numbers depend.
func (b *benchPeers) newTable(p *place) *peerTable {
	t := &peerTable{
		Command: b.command, Date: time.Now().UTC().Format(time.RFC3339), Topology: b.topo, Rate: b.rate, Congestion: p.congestion, Single: b.single, Bind: b.bind,
		CPUs: runtime.NumCPU(), Processor: kit.ProcessorModel(), Kernel: kit.KernelFile("/proc/sys/kernel/osrelease"),
		Versions: map[string]string{ourselves: kit.Version(), "Go": runtime.Version()}, Missing: []missingPeer{}, Failures: []string{},
	}
	if b.nodes == 1 {
		t.Rate = "none"
	}
	return t
}

// runRounds gives each setting its turn in each round. A setting that failed in one
// round has no turn in the next.
func (b *benchPeers) runRounds(settings []setting, p *place, t *peerTable, notes io.Writer, run measurer) error {
	for round := range b.rounds {
		fmt.Fprintf(notes, "# round %d of %d\n", round+1, b.rounds)
		var next []setting
		for _, s := range settings {
			c, before := s.cellsOf(b.cells), len(t.Failures)
			rows, err := run(s, c, b.time)
			if err != nil {
				return err
			}
			t.addRows(s, p.readableCommand(s, c, b.time), rows)
			if len(t.Failures) == before {
				next = append(next, s)
			}
		}
		settings = next
	}
	return nil
}

// sweepOf tries a library's algorithms, and returns the best settings and the one by rules made of
// all times, or of the table of --from.
func (b *benchPeers) sweepOf(library string, p *place, t *peerTable, notes io.Writer, run measurer) (won []setting, err error) {
	switch {
	case library != openMPI && (library != mpich || !b.rules), b.sweep == 0:
		return nil, nil
	case b.from != nil:
		return b.byRules(library, p, t, b.from, notes, run)
	}
	r, err := newRecord(library, b.topo, t)
	switch {
	case err != nil:
	case library == mpich:
		err = sweepMPICH(r, b.cells, b.sweep, notes, run)
	default:
		won, err = p.bestForced(b.cells, b.sweep, notes, run, r.add)
	}
	if b.rules {
		won = nil
	}
	if err != nil || len(r.Entries) == 0 {
		return won, err
	}
	text, err := r.file()
	if err == nil && b.keep != "" {
		err = kit.WriteOutput(notes, b.keep, text)
	}
	if err != nil {
		return nil, fmt.Errorf("what the sweep of %s took: %w", library, err)
	}
	by, err := b.byRules(library, p, t, &r.Table, notes, run)
	return append(won, by...), err
}

// byRules returns the setting of a library by rules made of a table, if it is possible. The
// library's own decisions stay in cells without proof that the rules are faster.
func (b *benchPeers) byRules(library string, p *place, t *peerTable, of *table.Table, notes io.Writer, run measurer) ([]setting, error) {
	by, err := p.makeRules(library, of, "", io.Discard)
	if err != nil {
		t.addFailure(notes, by, err)
		return nil, nil
	}
	lost, err := unproven(by, b.cells, b.time, notes, run)
	if err != nil {
		return nil, err
	}
	if by, err = p.makeRules(library, of, leaveOut(lost, b.cells.bytes), notes); err != nil {
		t.addFailure(notes, by, err)
		return nil, nil
	}
	return []setting{by}, nil
}
