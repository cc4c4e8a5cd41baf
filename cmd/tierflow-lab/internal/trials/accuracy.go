package trials

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// benchAccuracy is the command accuracy.
type benchAccuracy struct {
	kit.Problem
	reg   submodules.Registry
	file  string   // --machine
	from  string   // --from: a recording; empty: ranks are measured
	given []string // --plan, as often as it was given; none: count of the search space
	count int
	worst int
	stop  stats.Stop
	json  bool
	work  []tasks.Request

	machine *machine.Machine
}

func accuracyCommand(reg submodules.Registry) *cobra.Command {
	b := &benchAccuracy{reg: reg}
	c := &cobra.Command{
		Use:   "accuracy OP[,OP…]",
		Short: "Measure collectives beside what a simulation predicts",
		Long: `Measures collectives and simulates the same plans on the machine of --machine, which
tierflow bench p2p wrote on the same ranks. Measured is the median of the slowest rank's
time, of single calls that all ranks begin together. Each size has several plans:
those of --plan, or some of all shapes and algorithms beside the built-in rule's.

It prints the median error, how many predictions of 16 KiB and more are within 15%, the rank
correlation between measured and predicted times of the plans of one size, and the
worst predictions. --json prints a recording with all of it, the machine included.
--from FILE simulates the plans of a recording again and measures nothing: what a change
of the model does to its accuracy. It takes no operand.`,
		Example: `  tierflow-lab accuracy bcast,allreduce --topo 2x2 --machine machine.json
  tierflow run -n 8 --hosts a:4,b:4 -- tierflow-lab accuracy allreduce --machine machine.json --json
  tierflow-lab accuracy --from recording.json --worst 20`,
		Args: cobra.MaximumNArgs(1),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			if b.from != "" {
				return b.resimulate(c.Context(), args, c.OutOrStdout())
			}
			if err := kit.Operand("collectives such as bcast,allreduce")(c, args); err != nil {
				return err
			}
			return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, stderr io.Writer) error {
				if err := b.read(args[0]); err != nil {
					return err
				}
				return b.run(c.Context(), stdout, stderr)
			})
		}),
	}
	b.AddJobFlags(c)
	b.Type, b.Op = "f32", "sum" // as recordings have them
	f := c.Flags()
	f.StringVar(&b.Bytes, "bytes", "64,16KiB,256KiB,1MiB", "sizes of a rank's buffer of f32: 4,64KiB or 4:4MiB:x4")
	f.StringVar(&b.file, "machine", "", "file of the machine")
	f.StringVar(&b.from, "from", "", "file of a recording, to be simulated again")
	f.StringArrayVar(&b.given, "plan", nil, kit.PlanText+"; as often as wanted")
	f.IntVar(&b.count, "plans", 6, "how many plans of the search space beside the rule's")
	f.IntVar(&b.worst, "worst", 5, "how many of the worst predictions to print")
	f.DurationVar(&b.stop.Budget, "time", 200*time.Millisecond, "time for each plan and size, if 95% confidence of the mean within 2.5% doesn't come first")
	f.BoolVar(&b.json, "json", false, "print JSON")
	return c
}

// read checks all arguments.
func (b *benchAccuracy) read(operand string) (err error) {
	switch {
	case b.file == "":
		return kit.Usagef("--machine: give a file that tierflow bench p2p --machine wrote on these ranks")
	case b.stop.Budget <= 0:
		return kit.Usagef("--time %v: must be above 0", b.stop.Budget)
	case b.count < 1 || b.count > bench.MaxPlans:
		return kit.Usagef("--plans %d: give 1 to %d", b.count, bench.MaxPlans)
	}
	for _, b.Plan = range b.given {
		if _, err := b.ReadForced(b.reg); err != nil {
			return err
		}
	}
	if b.work, err = readWork(&b.Problem, operand); err != nil {
		return err
	}
	b.machine, err = kit.ReadMachine("machine", b.file)
	return err
}

// mostMeasured bounds the steps of a measured plan.
const mostMeasured = 500_000

// plans returns the plans to measure for a request: all given ones, or the
// rule's and some of the search space, evenly spread.
func (b *benchAccuracy) plans(r tasks.Request, t *levels.Topology) ([]tasks.Plan, error) {
	var all []tasks.Plan
	for _, text := range b.given {
		p, err := planner.Decide(r, t, &planner.Options{Plan: text})
		if err != nil {
			return nil, kit.UsageError(err)
		}
		all = append(all, p)
	}
	if len(all) > 0 {
		return all, nil
	}
	space := tune.Space{Registry: b.reg, Segments: []int64{64 << 10, tasks.Whole}, Windows: []int{8}, Inners: []int64{0}}
	known, err := b.distinct(r, t, append([]tasks.Plan{space.Rule(r, t)}, space.Plans(r, t)...))
	if err != nil || len(known) <= b.count {
		return known, err
	}
	for i := range b.count + 1 {
		all = append(all, known[i*(len(known)-1)/b.count])
	}
	return all, nil
}

// distinct returns the plans within mostMeasured steps, only one of those with equal times
// in a simulation: mostly these are the same programs by other names.
func (b *benchAccuracy) distinct(r tasks.Request, t *levels.Topology, plans []tasks.Plan) (all []tasks.Plan, err error) {
	seen := map[sim.Time]bool{}
	for _, p := range plans {
		job, err := sim.Compile(r, t, p, b.reg)
		if err != nil || job.Steps() > mostMeasured {
			continue
		}
		result, err := job.Run(b.machine, sim.Options{})
		if err != nil {
			return nil, kit.UsageError(err)
		}
		if !seen[result.Time] {
			seen[result.Time] = true
			all = append(all, p)
		}
	}
	return all, nil
}

func (b *benchAccuracy) run(ctx context.Context, stdout, stderr io.Writer) error {
	t := b.Job.Topology()
	notes := stdout
	if b.json {
		notes = stderr
	}
	fmt.Fprintf(notes, "# %v; %d CPUs\n# beside %s\n", b.Job, runtime.NumCPU(), kit.MachineText(b.file, b.machine))
	var rec *recording
	err := kit.RunRanks(ctx, b.Job, []string{""}, func(ctx context.Context, comms []*planner.Comm) error {
		meter, err := tune.NewMeter(ctx, comms[0], costs.Single)
		if err != nil {
			return err
		}
		mine := &recording{Machine: b.machine, Topology: t.String(), Links: b.Job.Links()}
		for _, r := range b.work {
			if err := b.measure(ctx, meter, r, mine); err != nil {
				return err
			}
		}
		if comms[0].Rank() == 0 {
			rec = mine
		}
		return nil
	})
	if err != nil || rec == nil { // not rank 0
		return err
	}
	return b.print(ctx, rec, t, stdout)
}

// measure adds a request's plans to a recording.
func (b *benchAccuracy) measure(ctx context.Context, meter tune.Meter, r tasks.Request, rec *recording) error {
	t := b.Job.Topology()
	plans, err := b.plans(r, t)
	if err != nil {
		return err
	}
	for _, p := range plans {
		timing, err := meter.Collective(ctx, r, p, b.stop)
		if err != nil {
			return err
		}
		rec.Cells = append(rec.Cells, cell{
			Collective: r.Coll.String(), Bytes: r.Bytes(), Root: int(r.Root), Plan: p.String(),
			Measured: timing.Slowest.P50, Half: timing.Slowest.Half, request: r,
		})
	}
	return nil
}

// resimulate simulates a recording.
func (b *benchAccuracy) resimulate(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) > 0 {
		return kit.Usagef("%q: with --from the recording says which collectives", args[0])
	}
	rec, t, err := readRecording(b.from)
	if err != nil {
		return kit.Usagef("--from: %w", err)
	}
	if b.file != "" {
		if rec.Machine, err = kit.ReadMachine("machine", b.file); err != nil {
			return err
		}
	}
	return b.print(ctx, rec, t, stdout)
}

// print simulates the cells of a recording and prints all.
func (b *benchAccuracy) print(ctx context.Context, rec *recording, t *levels.Topology, stdout io.Writer) error {
	if err := rec.simulate(ctx, t, b.reg); err != nil {
		return kit.UsageError(err)
	}
	return labkit.Print(stdout, b.json, rec, labkit.Left, func(w io.Writer) { rec.print(w, b.worst) })
}

// recording is measured collectives and the machine to predict them by.
type recording struct {
	Command  string           `json:"command,omitempty"` // by which it was measured
	Topology string           `json:"topology"`
	Links    string           `json:"links"`
	Machine  *machine.Machine `json:"machine"`
	Summary  accuracy         `json:"summary"`
	Cells    []cell           `json:"cells"`
}

// cell is one plan of a request.
type cell struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"` // of a rank's buffer, or of its block
	Root       int     `json:"root,omitempty"`
	Plan       string  `json:"plan"`
	Measured   float64 `json:"measured_ns"` // the median
	Half       float64 `json:"half_ns"`     // half the width of the mean's 95% confidence interval
	Simulated  float64 `json:"simulated_ns"`

	request tasks.Request
}

// maxRecording bounds a file of --json, bytes.
const maxRecording = 16 << 20

// readRecording reads the output of --json. Requests are of f32 and sums.
func readRecording(name string) (*recording, *levels.Topology, error) {
	data, err := files.Read(name, maxRecording)
	if err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	rec := &recording{}
	if err := d.Decode(rec); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if rec.Machine == nil {
		return nil, nil, fmt.Errorf("%s: there is no machine", name)
	}
	if _, err := rec.Machine.Format(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	t, err := levels.Parse(rec.Topology)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range rec.Cells {
		c := &rec.Cells[i]
		coll, err := kit.ParseCollective(c.Collective)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: cell %d: %w", name, i, err)
		}
		c.request = labkit.Request(coll, c.Bytes)
		c.request.Root = levels.Rank(c.Root)
	}
	return rec, t, nil
}

// simulate fills in the predictions and the summary.
func (rec *recording) simulate(ctx context.Context, t *levels.Topology, reg submodules.Registry) error {
	for i := range rec.Cells {
		c := &rec.Cells[i]
		p, err := tasks.ParsePlan(c.Plan)
		if err == nil {
			c.Simulated, err = labkit.Simulate(ctx, &sim.Compilation{Request: c.request, Topology: t, Plan: p, Registry: reg}, rec.Machine, 0)
		}
		if err != nil {
			return fmt.Errorf("cell %d: %w", i, err)
		}
	}
	rec.Summary = sumUpAccuracy(rec.Cells)
	return nil
}

// print writes the cells, the summary and the worst predictions.
func (rec *recording) print(w io.Writer, worst int) {
	fmt.Fprintln(w, "collective\tbytes\tmeasured µs\t±\tsimulated µs\tto measured\tplan")
	row := func(c *cell) {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%.2f\t%s\n",
			c.Collective, tasks.FormatBytes(c.Bytes), c.Measured/1e3, c.Half/1e3, c.Simulated/1e3, c.ratio(), c.Plan)
	}
	for i := range rec.Cells {
		row(&rec.Cells[i])
	}
	fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(rec.Summary.String()))
	if worst = min(worst, len(rec.Cells)); worst > 0 {
		fmt.Fprintln(w, "\nworst predictions:")
		sorted := slices.Clone(rec.Cells)
		slices.SortStableFunc(sorted, func(a, b cell) int { return cmp.Compare(b.distance(), a.distance()) })
		for i := range sorted[:worst] {
			row(&sorted[i])
		}
	}
}
