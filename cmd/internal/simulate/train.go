package simulate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/planner/fuse"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// training is the command simulate train.
type training struct {
	simulation
	file    string // --layers
	buckets string // --bucket
	spare   bool
	picture string // --picture
	model   network
	sizes   []int64 // of buckets, bytes
}

// trainCommand returns simulate train.
func trainCommand(reg submodules.Registry) *cobra.Command {
	t := &training{simulation: simulation{reg: reg}}
	c := &cobra.Command{
		Use:   "train",
		Short: "Say how long a training step takes with buckets of several sizes",
		Long: `Simulates a step of data-parallel training: every rank computes all layers forward, then
backward, and buckets of gradients are averaged as soon as they are there, as package
planner/fuse does it. --layers names a file of JSON with the layers in the order of
computing forward: what each takes, and the elements of its tensors (f32).

Each bucket's allreduce is simulated by itself on the machine. They go one after the other,
beside the computation, and their work on a rank's processor is taken from it, unless
--spare says that there are processors beside those that compute.

It prints for each size of buckets how long the collectives take, how long the step, and
which share of the collectives is hidden behind computing. --picture draws the best step.`,
		Example: `  tierflow simulate train --layers testdata/layers/resnet50.json --topo 64x8 --bucket 1MiB,4MiB,25MiB
  tierflow simulate train --layers testdata/layers/resnet50.json --topo 4x1 --machine m.json --spare
  tierflow simulate train --layers testdata/layers/resnet50.json --topo 64x8 --picture step.svg`,
		Args: kit.NoOperands,
		RunE: kit.Checked(t.read, t.run),
	}
	t.AddTopoFlag(c, "4x2")
	t.AddPlanFlag(c, kit.PlanText)
	t.AddTableFlag(c)
	f := c.Flags()
	f.StringVar(&t.file, "layers", "", "file of a model's layers")
	f.StringVar(&t.buckets, "bucket", "256KiB,1MiB,4MiB,25MiB", "bytes of a bucket, a list")
	f.BoolVar(&t.spare, "spare", false, "communication takes nothing from what computes")
	f.StringVar(&t.picture, "picture", "", "file for a picture of the best step (default none)")
	t.addMachineFlags(c)
	return c
}

// read checks all arguments.
func (t *training) read([]string) (err error) {
	if t.file == "" {
		return kit.Usagef("--layers is missing; give a file such as testdata/layers/resnet50.json")
	}
	for text := range strings.SplitSeq(t.buckets, ",") {
		n, err := tasks.ParseBytes(strings.TrimSpace(text))
		if err != nil || n < 4 {
			return kit.Usagef("--bucket %s: %q is no size; allowed are those such as 256KiB,25MiB", t.buckets, text)
		}
		t.sizes = append(t.sizes, n)
	}
	if t.on, err = t.ReadTopology(); err != nil {
		return err
	}
	if t.model, err = readNetwork(t.file); err != nil {
		return err
	}
	if err := t.CheckTable(); err != nil {
		return err
	}
	if _, err := t.ReadForced(t.reg); err != nil {
		return err
	}
	return t.readMachine()
}

// bucketOutcome is the outcome of a size of buckets.
type bucketOutcome struct {
	Bucket   int64   `json:"bucket_bytes"`
	Buckets  int     `json:"buckets"`
	Calls    float64 `json:"collectives_ns"`
	Busy     float64 `json:"processor_ns"` // of a rank, for the collectives
	Step     float64 `json:"step_ns"`
	Hidden   float64 `json:"hidden"`
	Exposed  float64 `json:"exposed_ns"` // from the end of computing to the end of the step
	Computes float64 `json:"computing_ns"`
	Best     bool    `json:"best"`

	outcome sim.Outcome
}

func (t *training) run(ctx context.Context, stdout, stderr io.Writer) error {
	known, best := map[int]sim.Call{}, 0
	var all []bucketOutcome
	for i, bucket := range t.sizes {
		one, err := t.step(ctx, bucket, known, stderr)
		if err != nil {
			return err
		}
		if all = append(all, one); one.Step < all[best].Step {
			best = i
		}
	}
	all[best].Best = true
	if t.picture != "" {
		svg, err := t.draw(&all[best]).SVG()
		if err == nil {
			err = kit.WriteOutput(stdout, t.picture, svg)
		}
		if err != nil {
			return err
		}
	}
	return kit.WriteResult(stdout, t.json, all, func() []byte { return t.text(all) })
}

// step simulates a step with buckets of so many bytes. known are calls by their elements.
func (t *training) step(ctx context.Context, bucket int64, known map[int]sim.Call, stderr io.Writer) (r bucketOutcome, err error) {
	sizes, order := t.model.sizes()
	const float32Bytes = 4
	buckets, err := fuse.Cut(sizes, order, bucket, float32Bytes)
	if err != nil {
		return r, kit.UsageError(err)
	}
	calls, tensors := make([]sim.Call, len(buckets)), make([][]int, len(buckets))
	busy := sim.Time(0)
	for k, b := range buckets {
		c, ok := known[b.Elements]
		if !ok {
			if c, err = t.call(ctx, b.Elements, stderr); err != nil {
				return r, err
			}
			known[b.Elements] = c
		}
		calls[k], tensors[k] = c, b.Tensors
		busy += c.Busy
	}
	script := t.model.script(tensors, calls)
	script.Spare = t.spare
	o := script.Run()
	return bucketOutcome{
		Bucket: bucket, Buckets: len(buckets), Calls: o.Calls.Nanoseconds(), Busy: busy.Nanoseconds(), Step: o.Time.Nanoseconds(),
		Hidden: kit.Round(o.Hidden(), 1e4), Exposed: (o.Time - o.LastComputed()).Nanoseconds(), Computes: o.Compute.Nanoseconds(),
		outcome: o,
	}, nil
}

// call simulates the allreduce of a bucket.
func (t *training) call(ctx context.Context, elements int, stderr io.Writer) (c sim.Call, err error) {
	t.request = tasks.Request{Coll: tasks.Allreduce, Count: int64(elements), Type: tasks.Float32, Op: tasks.Average, InPlace: true}
	plan, err := t.Decide(t.request, t.on)
	if err != nil {
		return c, err
	}
	t.isLarge = false
	job, bar, err := t.makeJob(t.compilation(ctx, plan), stderr)
	if err != nil {
		return c, err
	}
	defer bar.Finish()
	result, err := job.Run(t.machine, sim.Options{Seed: t.seed, Check: func(int64) error { return ctx.Err() }})
	if err != nil {
		return c, kit.UsageError(err)
	}
	c.Time = result.Time
	for _, b := range result.Busy { // the busiest rank holds up the step
		c.Busy = max(c.Busy, min(b, c.Time))
	}
	return c, nil
}

// draw draws a step: the layers, and the buckets beside them.
func (t *training) draw(r *bucketOutcome) viz.Gantt {
	o := &r.outcome
	computing, buckets := viz.GanttRow{Name: "computing"}, viz.GanttRow{Name: "sums"}
	bar := viz.GanttBar{Kind: "forward", Label: "all layers"}
	for i, end := range o.Computed {
		if i > 0 {
			bar = viz.GanttBar{Kind: "backward", Label: t.model.layers[len(t.model.layers)-i].name, Begin: bar.End}
		}
		bar.End = end.Duration()
		computing.Bars = append(computing.Bars, bar)
	}
	for k := range o.Begun {
		buckets.Bars = append(buckets.Bars, viz.GanttBar{Kind: "sum", Label: fmt.Sprintf("bucket %d", k), Begin: o.Begun[k].Duration(), End: o.Ended[k].Duration()})
	}
	return viz.Gantt{
		Title: fmt.Sprintf("a training step on %v, buckets of %s: %.1f ms, %.1f ms without sums; %.0f%% of the sums hides", t.on, tasks.FormatBytes(r.Bucket), r.Step/1e6, r.Computes/1e6, 100*r.Hidden),
		Rows:  []viz.GanttRow{computing, buckets},
	}
}

// text prints a table.
func (t *training) text(all []bucketOutcome) []byte {
	var out bytes.Buffer
	sizes, _ := t.model.sizes()
	elements := int64(0)
	for _, n := range sizes {
		elements += int64(n)
	}
	forward, backward := t.model.compute()
	fmt.Fprintf(&out, "train on %v: %d layers, %d tensors, %s; computing takes %.1f ms forward, %.1f ms backward\n",
		t.on, len(t.model.layers), len(sizes), tasks.FormatBytes(4*elements), forward/1e6, backward/1e6)
	fmt.Fprintf(&out, "layers: %s\nmachine: %s\n", t.model.source, kit.MachineText(t.simulation.file, t.machine))
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "bucket\tbuckets\tcollectives ms\tprocessor ms\tstep ms\thidden\texposed ms\t\n")
	for _, r := range all {
		mark := ""
		if r.Best {
			mark = " best"
		}
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.1f%%\t%.2f\t%s\n", tasks.FormatBytes(r.Bucket), r.Buckets, r.Calls/1e6, r.Busy/1e6, r.Step/1e6, 100*r.Hidden, r.Exposed/1e6, mark)
	}
	_ = w.Flush() // to memory
	return out.Bytes()
}
