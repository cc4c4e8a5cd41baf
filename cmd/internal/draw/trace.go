package draw

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/payload"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// tracing is the command trace.
type tracing struct {
	kit.Problem
	format string
	out    string
	width  int
	last   int
	path   int // lines of the critical path

	recorded []string // files to read in place of a run
	merge    string   // folder of the traces of a job's ranks
	calls    string   // a selection of the job's calls; empty: all
	report   string   // file of a page of HTML about them; empty: none
	machine  string   // file of the machine to predict them on; empty: they aren't

	reg      submodules.Registry
	request  tasks.Request
	recorder *trace.Recorder
}

// TraceCommand returns trace.
func TraceCommand(reg submodules.Registry) *cobra.Command {
	r := &tracing{reg: reg}
	c := &cobra.Command{
		Use:   "trace OP | trace --recorder FILE [FILE...] | trace --merge DIR",
		Short: "Run a collective once and show when each step ran",
		Long: `Runs a collective (` + kit.AnyOf(tasks.Requestable()) + `)
twice on goroutine ranks and records every step of the second run, on all ranks.
perfetto writes a file for ui.perfetto.dev: a process per rank, a thread per level.
text draws a line per rank and level, with the letter of what was in progress:
` + letters() + `  *  several of them

It also says how much of the work inside nodes (sb) went on while the link between
nodes was busy (ib): what the pipeline of segments is for. Waiting for a peer in
shared memory does not count as work. A line says when the first message between nodes
leaves, and how much later than the last one the run ends: a call that stands alone pays
for both. And it prints what the critical path consists of:
the chain of steps that decided when the last one ended.

--recorder runs nothing: it reads what the ranks of a job recorded to files, see
TIERFLOW_RECORDER, and prints each rank's last events, oldest first, and what it was
in when the file ends: also of ranks that are stuck, or were killed.

--merge runs nothing either: it makes one trace of what the ranks of a job have kept in a
folder, see TIERFLOW_TRACE. It puts all times on rank 0's clock and says how far off they
may be, and where the time of calls went. --report writes a page of HTML about them. tierflow
run --trace and --report do all that; this is for ranks of other launchers. With --machine
it also simulates some calls of each request on that machine, for ranks that enter when they
did, and says which steps took longer than that.`,
		Example: `  tierflow trace allreduce --topo 4x2 --bytes 1MiB -o trace.json
  tierflow trace bcast --link i=10gbit,20us --plan fs=64KiB --format text
  tierflow trace allreduce --format text --plan shape=han-lockstep,fs=128KiB
  tierflow trace allreduce --bytes 64KiB -o -
  tierflow trace --recorder job.%r.rec
  tierflow trace --merge DIR -o t.json.gz
  tierflow trace --merge DIR --report r.html
  tierflow trace --merge DIR --machine m.json --format text`,
		Args: func(c *cobra.Command, args []string) error {
			if len(r.recorded) > 0 {
				return nil
			}
			if r.merge != "" {
				return kit.NoOperands(c, args)
			}
			if r.calls != "" {
				return kit.Usagef("--calls %s goes with --merge only", r.calls)
			}
			if r.report != "" {
				return kit.Usagef("--report %s goes with --merge only", r.report)
			}
			if r.machine != "" {
				return kit.Usagef("--machine %s goes with --merge only; tierflow simulate predicts a collective", r.machine)
			}
			return kit.Operand(kit.WhichCollective)(c, args)
		},
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			if r.merge != "" {
				return r.runMerge(c)
			}
			if len(r.recorded) > 0 {
				return r.runRecordings(c, args)
			}
			if err := r.read(args[0]); err != nil {
				return err
			}
			return r.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		}),
	}
	r.AddJobFlags(c)
	r.AddRequestFlags(c, "1MiB", kit.BytesText)
	r.AddPlanFlag(c, kit.PlanText)
	r.AddTableFlag(c)
	f := c.Flags()
	f.StringVar(&r.format, "format", "perfetto", "perfetto or text")
	f.StringArrayVar(&r.recorded, "recorder", nil, "read recordings from this file, and those named after it, and run nothing; %r stands for every rank")
	f.StringVar(&r.merge, "merge", "", "make one trace of the files in this folder, which a job has left with TIERFLOW_TRACE")
	f.StringVar(&r.calls, "calls", "", "with --merge: only the 20 longest calls, or 100-119 in the order of time from 0 on (default all)")
	f.StringVar(&r.report, "report", "", "with --merge: file for a browser with where the time of calls went; -o is then needed no more")
	f.StringVar(&r.machine, "machine", "", "with --merge: show beside each rank what is predicted on the machine of this file, or assumed; tierflow bench p2p writes one")
	f.IntVar(&r.last, "last", 20, "how many of the last events of each recording to print, 0 for all")
	f.IntVar(&r.path, "path", 0, "how many lines of the critical path to print, the longest ones")
	f.IntVar(&r.width, "width", 100, "columns of a text timeline")
	kit.CompleteWords(c, "format", "perfetto", "text")
	f.StringVarP(&r.out, "output", "o", "", "file to write, - for standard output (text needs none)")
	return c
}

// letters lists the letters of a timeline, a line each.
func letters() string {
	var b strings.Builder
	for _, c := range tasks.Collectives() {
		if row := c.Row(); row.Suffix != "" {
			fmt.Fprintf(&b, "  %c  %s\n", viz.Letter("i"+row.Suffix), row.Name)
		}
	}
	return b.String()
}

func (r *tracing) read(operand string) error {
	if kit.IsLaunched() {
		return kit.Usagef("this process is a rank of a launched job; trace runs on goroutine ranks of one process")
	}
	request, t, err := r.ReadPlanned(operand, r.reg)
	if err != nil {
		return err
	}
	if err := payload.CheckType(request.Type); err != nil && request.Coll != tasks.Barrier {
		return kit.Usagef("--dtype: %w", err)
	}
	g, err := r.ReadGoroutines()
	if err != nil {
		return err
	}
	if err := r.checkFormat(); err != nil {
		return err
	}
	switch {
	case r.path < 0:
		return kit.Usagef("--path %d: give a number of lines, 0 for none", r.path)
	case r.width < 1 || r.width > 10_000:
		return kit.Usagef("--width %d: allowed are 1 to 10000 columns", r.width)
	case request.Bytes() > payload.MaxBytes/int64(2*t.Size()), request.Blocks() && request.Bytes() > payload.MaxBytes/int64(2*t.Size()*t.Size()):
		return kit.Usagef("--bytes %s: buffers of %d ranks would take over %s together", r.Bytes, t.Size(), tasks.FormatBytes(payload.MaxBytes))
	}
	r.request, r.recorder = request, trace.NewRecorder()
	g.Hooks = r.recorder.Hooks()
	r.Job = g
	return nil
}

// checkFormat checks --format, and -o of a trace for perfetto, unless a report is written in its place.
func (r *tracing) checkFormat() error {
	switch {
	case r.format != "perfetto" && r.format != "text":
		return kit.Usagef("--format %q: known are perfetto and text", r.format)
	case r.format == "perfetto" && r.out == "" && r.report == "":
		return kit.Usagef("no file to write the trace to: give -o FILE, or -o - for standard output")
	}
	return nil
}

func (r *tracing) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := kit.RunRanks(ctx, r.Job, []string{r.Plan}, r.runRank); err != nil {
		return err
	}
	events := secondRun(r.recorder.Events())
	path := viz.TracePath(events)
	summary := fmt.Sprintf("%v on %v\n", r.request, r.Job) + overlapText(events, r.Job.Topology().Size()) + endsText(events, r.Job.Topology()) + pathText(path, r.path)
	if r.format == "perfetto" {
		if err := kit.WriteOutput(stdout, r.out, viz.Perfetto(events, path...)); err != nil {
			return err
		}
		_, err := io.WriteString(stderr, summary)
		return err
	}
	return kit.WriteOutput(stdout, r.out, append([]byte(summary), viz.Timeline(events, r.width)...))
}

// pathText sums up the critical path, and lists so many lines of it.
func pathText(path []viz.PathPiece, lines int) string {
	if len(path) == 0 {
		return ""
	}
	text := fmt.Sprintf("critical path, which ends on rank %d:\n%s", path[len(path)-1].Rank, viz.PathShares(path))
	if lines > 0 {
		text += string(viz.PathText(path, lines))
	}
	return text
}

// endsText describes the run before the first message between nodes, and after the last.
func endsText(events []trace.Event, on *levels.Topology) string {
	var d viz.Ends
	for _, e := range events {
		if e.Step != trace.WholeRun {
			d.Add(e, on)
		}
	}
	return d.String()
}

// runRank runs the collective twice on one rank: the first run pays for first times.
func (r *tracing) runRank(ctx context.Context, comms []*planner.Comm) error {
	c := comms[0]
	send, recv, err := payload.Buffers(r.request, c.Rank(), c.Size(), payload.Ordinary)
	if err != nil {
		return err
	}
	call, err := payload.Prepare(ctx, c, r.request, send, recv)
	if err != nil {
		return err
	}
	for range 2 {
		if err := call.Run(ctx); err != nil {
			return err
		}
		if err := planner.Barrier(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// secondRun returns the events of the third call, the collective after a barrier. Time counts
// from the first of them.
func secondRun(events []trace.Event) []trace.Event {
	const call = 2
	var kept []trace.Event
	for _, e := range events { // sorted by begin
		if e.Run == call {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	first := kept[0].Begin
	for i := range kept {
		kept[i].Begin -= first
		kept[i].End -= first
	}
	return kept
}

// overlapText says how much of sb went on during ib. It sums over all ranks with both.
func overlapText(events []trace.Event, ranks int) string {
	var work []trace.Event
	for _, e := range events {
		task, _, primitive, _, _ := e.Source.Describe(e.Step)
		if strings.HasPrefix(task, "ib#") || strings.HasPrefix(task, "sb#") && primitive != submodules.AwaitStep.String() {
			work = append(work, e)
		}
	}
	var both, inside time.Duration
	for rank := range levels.Rank(ranks) {
		b, between, s := viz.Overlap(work, rank, 'i', 's')
		if between > 0 {
			both, inside = both+b, inside+s
		}
	}
	if inside == 0 {
		return ""
	}
	return fmt.Sprintf("ib and sb overlap: %.0f%% of sb (%v of %v on the leaders)\n", 100*float64(both)/float64(inside), both, inside)
}
