package bench

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/payload"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Commands returns bench's subcommands.
func Commands(reg submodules.Registry) []*cobra.Command {
	return []*cobra.Command{collCommand(reg), p2pCommand(), recoverCommand(), syncCommand(), taskCommand(reg)}
}

// Coll is the command bench coll.
type Coll struct {
	kit.Problem
	Effort   effort
	json     bool   // print JSON
	wire     bool   // a plain stream beside
	alloc    bool   // buffers of planner.Alloc
	tls      string // of a second job between nodes; empty: there is none
	file     string // --simulate: a machine's file; empty: nothing is simulated
	Registry submodules.Registry
	given    []string        // --plan, as often as it was given
	plans    []string        // to compare; empty ones: the environment's, or as chosen
	Work     []tasks.Request // to measure, in this order
	from     string          // --root: a rank, all, or all/N
	every    int             // distance of roots measured one by one; 0: --root is not all
	rotate   bool            // the root, from call to call
	others   float64         // share of the processors' time that other programs took; on rank 0
	Results  Results
}

func collCommand(reg submodules.Registry) *cobra.Command {
	b := &Coll{Registry: reg}
	c := &cobra.Command{
		Use:   "coll OP[,OP…]",
		Short: "Measure collectives and check their results",
		Long: `Measures collectives (` + strings.Join(kit.Names(tasks.Requestable()), ", ") + `;
all for all of them) and checks what they leave in the buffers.

A sample is the slowest rank's time per call; all ranks begin it together, after
a barrier. An operation of less than 20 ms is called as often as fills 20 ms in
one sample, one of less than 200 µs so more than 100 times; the root, where there is
one, then changes from call to call, unless --root is given; --root all measures every
root by itself, in turns, and adds the least, the median and the largest of the roots'
p50, and the ratio of the last to the first; all/13 takes every 13th rank. Buffers are spoilt before
each sample and checked after it; "wrong" counts wrong elements on all ranks.

Calls back to back hide each other: a rank runs ahead, and the end of a call is lost in
the next. With --single a sample is one call, as in a program that computes in between.
All ranks write their buffers anew and meet in two barriers before it. The root is 0,
unless --root is given. With --skew the last rank computes for so long before its call;
the times include that, so what they exceed it by is the call's own.

Columns, 80 characters wide: iters is the number of samples; min, p50 and p99 are
microseconds per call, where p99 of fewer than 100 samples is the longest; ±% is half
the width of the 95% confidence interval of the mean, in percent of the mean; algbw is
bytes / p50, where ranks have blocks those of all; busbw is that times 2(n-1)/n for
allreduce, (n-1)/n for those with blocks and 1 for bcast and reduce, as in NCCL's
tests; 1 GB is 1e9 bytes. Below the rows of a size, "tie" names the plans whose
intervals overlap with the fastest one's: take more --time to tell them apart. If
programs other than the ranks take over 10% of the processors' time (Linux), the end
says so. JSON has all that beside a provenance of topology, links, host,
version, date and regime, in GB/s as
algbw_gbytes_per_s and busbw_gbytes_per_s; algbw_gbps and busbw_gbps are old names of
the same numbers, deprecated, which the next version goes without. tierflow-lab figure
draws the JSON.

--simulate prints the times of a simulation in place of measured ones. Then no bytes
are moved, nothing is checked, and --topo may have thousands of ranks.

Plans are measured in turns, so that what disturbs the machine disturbs all of them;
with several a column says which. Without --plan the flat shape, which ignores nodes,
is measured beside what the built-in rule chooses, or a decision table. Both use the
same emulated link between nodes: goroutines have none, and without one a hierarchy could
not gain anything. It passes messages first come, first served, where TCP connections and
--simulate share the rate among those under way. So trees in which a rank sends to several
nodes at once, such as nbc/binomial, look faster with it than on a network. Where ranks are
numbered node by node flat trees mostly follow the nodes by themselves; 4x2/rr numbers them
across.`,
		Example: `  tierflow bench coll allreduce
  tierflow bench coll bcast,allreduce --topo 4x2 --bytes 4:4MiB:x4 --json
  tierflow bench coll allreduce --link i=10gbit,20us --plan shape=han,fs=128KiB
  tierflow bench coll allreduce --topo 4x2/rr
  tierflow bench coll allreduce --plan shape=han --plan shape=han-lockstep
  tierflow bench coll bcast --topo 4x2/rr --bytes 64KiB --root all
  tierflow bench coll bcast,reduce --topo 64x12 --root all/13 --bytes 64KiB --simulate assumed --json
  tierflow bench coll allreduce --topo 1x2 --bytes 8,64KiB --single
  tierflow bench coll allgather --topo 2x2 --counts 1000,0,1000,3000
  tierflow bench coll allreduce --topo 64x12 --simulate machine.json
  tierflow bench coll all --topo a:3,b:1,c:2 --bytes 0,12,100KiB
  tierflow bench coll barrier --topo 8 --iters 50`,
		Args: kit.Operand("collectives such as bcast,allreduce"),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			if b.file != "" {
				return b.runSimulated(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
			}
			run := func(stdout, stderr io.Writer) error {
				if err := b.Read(args[0]); err != nil {
					return err
				}
				return b.run(c.Context(), stdout, stderr)
			}
			if b.tls != "" {
				return b.RunSealed(c.Context(), b.tls, c.OutOrStdout(), c.ErrOrStderr(), run)
			}
			return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), run)
		}),
	}
	b.AddJobFlags(c)
	b.AddDataFlags(c, "8,1KiB,64KiB,1MiB,4MiB", "sizes such as 4,64KiB or 4:4MiB:x4: "+kit.BytesText)
	b.AddRootFlag(c)
	b.AddCountsFlag(c)
	c.Flags().StringArrayVar(&b.given, "plan", nil, kit.PlanText+"; several are measured in turns (default $"+env.Plan+", else flat beside what is chosen)")
	b.AddTableFlag(c)
	c.Flags().IntVar(&b.Effort.samples, "iters", 0, "samples of each size and plan (default as many as fit into --time)")
	c.Flags().DurationVar(&b.Effort.Time, "time", 500*time.Millisecond, "time for each size and plan")
	c.Flags().BoolVar(&b.Effort.single, "single", false, "one call a sample, on buffers just written, in place of calls back to back")
	c.Flags().DurationVar(&b.Effort.skew, "skew", 0, "time that the last rank computes before a single call; with --single")
	c.Flags().BoolVar(&b.json, "json", false, "print JSON")
	c.Flags().BoolVar(&b.Effort.keep, "samples", false, "with --json: each sample, too, as samples_us")
	c.Flags().BoolVar(&b.wire, "wire", false, "on launched processes of several nodes: a plain one-way TCP stream of as many bytes first, and ratios to it")
	c.Flags().StringVar(&b.tls, "tls", "", "on launched processes: each plan in a plain job and in one with TLS between nodes, in turns, and ratios to plain; "+
		"job, or cert=FILE,key=FILE,ca=FILE[,id=GLOB]")
	c.Flags().Lookup("tls").NoOptDefVal = "job"
	c.Flags().StringVar(&b.file, "simulate", "", kit.SimulateText)
	c.Flags().BoolVar(&b.alloc, "alloc", false, "buffers from planner.Alloc, which ranks of a node read in place, not ordinary slices")
	return c
}

// Read checks all arguments.
func (b *Coll) Read(operand string) error {
	if b.wire && !kit.IsLaunched() {
		return kit.Usagef("--wire: goroutine ranks have no wire between them; start processes with tierflow run")
	}
	colls, err := kit.ParseCollectives(operand)
	if err != nil {
		return err
	}
	if err := cmp.Or(b.CheckFlags(colls...), b.CheckExclusive("iters", "time"), b.readPlans()); err != nil {
		return err
	}
	sizes, err := kit.ParseSizes(b.Bytes)
	if err != nil {
		return kit.Usagef("--bytes: %w", err)
	}
	if b.Effort.samples < 0 || b.Effort.samples > maxSamples || b.Effort.Time <= 0 {
		return kit.Usagef("--iters %d, --time %v: at most %d samples, and a time above 0", b.Effort.samples, b.Effort.Time, maxSamples)
	}
	if b.Effort.keep && !b.json {
		return kit.Usagef("--samples: it is for --json; rows have no room for them")
	}
	if b.Effort.skew < 0 || b.Effort.skew > maxSkew || b.Effort.skew > 0 && !b.Effort.single {
		return kit.Usagef("--skew %v: at most %v, and only with --single: calls back to back would be late all the more", b.Effort.skew, maxSkew)
	}
	if err := b.readRoot(); err != nil {
		return err
	}
	if b.Counts != "" {
		sizes = sizes[:1] // any one: counts take its place
	}
	return b.readWork(colls, sizes)
}

const (
	allRoots = "all"
	// maxSkew keeps a mistyped skew from making a run of hours.
	maxSkew = 100 * time.Millisecond
	// mostRoots bounds the programs of --root all.
	mostRoots = 256
)

// AddRootFlag adds --root, for one root or all.
func (b *Coll) AddRootFlag(c *cobra.Command) {
	c.Flags().StringVar(&b.from, "root", "", kit.RootText+", or all, or all/N, every Nth (default 0, in short operations all by turns)")
}

func (b *Coll) readRoot() (err error) {
	size := b.Job.Topology().Size()
	if !b.IsGiven("root") {
		b.rotate = !b.Effort.single
		return nil
	}
	step, isAll := strings.CutPrefix(b.from, allRoots+"/")
	switch {
	case b.from == allRoots:
		b.every = 1
	case isAll:
		if b.every, err = strconv.Atoi(step); err != nil || b.every < 1 || b.every > size {
			return kit.Usagef("--root %s: write all/N with N from 1 to %d, for every Nth rank", b.from, size)
		}
	default:
		if b.Root, err = strconv.Atoi(b.from); err != nil {
			return kit.Usagef("--root %s: give a rank, all, or all/N", b.from)
		}
		return nil
	}
	if (size-1)/b.every >= mostRoots {
		return kit.Usagef("--root %s: %d ranks; at most %d, as with all/%d, or give one root", b.from, (size-1)/b.every+1, mostRoots, (size-1)/mostRoots+1)
	}
	return nil
}

// rootsOf returns the roots of a request to measure, one by one.
func (b *Coll) rootsOf(r tasks.Request) []levels.Rank {
	if !r.Rooted() || b.every == 0 {
		return []levels.Rank{r.Root}
	}
	var all []levels.Rank
	for rank := 0; rank < b.Job.Topology().Size(); rank += b.every {
		all = append(all, levels.Rank(rank))
	}
	return all
}

// readPlans chooses the plans to compare: forced ones, else flat beside the rule's choice.
func (b *Coll) readPlans() error {
	if _, err := ReadPlans(&b.Problem, b.Registry, b.given); err != nil {
		return err
	}
	switch {
	case len(b.given) > 0:
		b.plans = b.given
	case os.Getenv(env.Plan) != "":
		// As text: a communicator of a launched job doesn't ask the environment.
		b.plans = []string{os.Getenv(env.Plan)}
	case b.Job.Topology().Nodes() == 1:
		b.plans = []string{""} // flat differs from han between nodes only
	default:
		b.plans = []string{"shape=flat", ""}
	}
	return nil
}

// readWork lists the requests to measure, and complains if their buffers are too
// large.
func (b *Coll) readWork(colls []tasks.Collective, sizes []int64) error {
	t := b.Job.Topology()
	for _, coll := range colls {
		if coll == tasks.Barrier {
			b.Work = append(b.Work, tasks.Request{Coll: coll})
			continue
		}
		for _, n := range sizes {
			r, err := b.ReadRequest(coll, n, t)
			if err != nil {
				return err
			}
			// A send and a receive buffer, and for each root partial results.
			buffers := int64(1+len(b.rootsOf(r))) * int64(t.Size()*len(b.plans)*len(b.jobs()))
			if most := payload.MaxBytes / buffers; r.AllBytes(t.Size()) > most && b.file == "" {
				each := most
				if r.Blocks() {
					each /= int64(t.Size())
				}
				return kit.Usagef("%v of %s: buffers of %d ranks would take over %s together; at most %s each",
					r.Coll, tasks.FormatBytes(r.Bytes()), t.Size(), tasks.FormatBytes(payload.MaxBytes), tasks.FormatBytes(each))
			}
			if err := payload.CheckType(r.Type); err != nil {
				return kit.Usagef("--dtype: %w", err)
			}
			b.Work = append(b.Work, r)
		}
	}
	return nil
}
