package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Segments is the flags of commands for tasks on segments, and their ranks.
type Segments struct {
	kit.Problem
	JSON     bool
	file     string // --simulate; empty: nothing is simulated
	Stop     stats.Stop
	Registry submodules.Registry

	given   []string // --plan, as often as it was given
	Segment int64
	Forced  []tasks.Forced // one for each plan, at least one
}

// TaskMeter measures tasks of one rank, or of all ranks of a simulated machine.
type TaskMeter interface {
	Rank() levels.Rank // 0 has the results
	Topology() *levels.Topology
	Stages(ctx context.Context, r tasks.Request, p tasks.Plan, stop stats.Stop, book *costs.Book) ([]costs.Series, error)
	Overlap(ctx context.Context, r tasks.Request, p tasks.Plan, kinds [2]tasks.Kind, stop stats.Stop) (meter.Overlapped, error)
}

var (
	_ TaskMeter = (*meter.Bench)(nil)
	_ TaskMeter = (*meter.Simulated)(nil)
)

// AddFlags adds all flags.
func (b *Segments) AddFlags(c *cobra.Command) {
	b.AddJobFlags(c)
	b.AddRequestFlags(c, "64KiB", "size of a segment")
	f := c.Flags()
	f.StringArrayVar(&b.given, "plan", nil, kit.PlanText+"; several are measured one after the other")
	f.DurationVar(&b.Stop.Budget, "time", time.Second, "time for the repetitions, if 95% confidence of the mean within 2.5% doesn't come first")
	f.StringVar(&b.file, "simulate", "", kit.SimulateText)
	f.BoolVar(&b.JSON, "json", false, "print JSON")
}

// RunOnRanks reads the flags, prepares ranks, and calls f with writers that print on rank 0 only.
func (b *Segments) RunOnRanks(c *cobra.Command, f func(ctx context.Context, stdout, stderr io.Writer) error) error {
	if err := b.read(); err != nil {
		return err
	}
	if b.file == "" {
		return b.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, stderr io.Writer) error {
			return f(c.Context(), stdout, stderr)
		})
	}
	if b.IsGiven("time") {
		return kit.Usagef("--time: a simulation with --simulate has no such thing")
	}
	if _, err := b.ReadSimulated(b.file); err != nil {
		return err
	}
	return f(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
}

func (b *Segments) read() (err error) {
	if b.Segment, err = b.ReadSize(); err != nil {
		return err
	}
	if b.Segment < 1 || b.Segment > maxSegment {
		return kit.Usagef("--bytes %s: a segment has 1B to %s", b.Bytes, tasks.FormatBytes(maxSegment))
	}
	if b.Stop.Budget <= 0 {
		return kit.Usagef("--time %v: must be above 0", b.Stop.Budget)
	}
	b.Forced, err = ReadPlans(&b.Problem, b.Registry, b.given)
	return err
}

// MaxPlans bounds the plans of a command, each with communicators and buffers of its own.
const MaxPlans = 16

// ReadPlans reads each given plan, or the environment's.
func ReadPlans(p *kit.Problem, reg submodules.Registry, given []string) (all []tasks.Forced, err error) {
	if len(given) > MaxPlans {
		return nil, kit.Usagef("--plan: %d plans; at most %d", len(given), MaxPlans)
	}
	if len(given) == 0 {
		given = []string{""}
	}
	for _, p.Plan = range given {
		forced, err := p.ReadForced(reg)
		if err != nil {
			return nil, err
		}
		all = append(all, forced)
	}
	return all, nil
}

// maxSegment bounds the buffers, of a few dozen segments.
const maxSegment = 256 << 20

// PrintHeader describes the machine, once arguments are known to be right.
func (b *Segments) PrintHeader(stdout, stderr io.Writer) {
	notes := notesOut(b.JSON, stdout, stderr)
	if b.file != "" {
		fmt.Fprintf(notes, "# %v\n", b.Job)
		return
	}
	fmt.Fprintf(notes, "# %v; %d CPUs\n", b.Job, runtime.NumCPU())
}

// MakeRequest returns a request of n segments and its plan of a shape; shape 0 leaves the shape to
// the planner's rules.
func (b *Segments) MakeRequest(coll tasks.Collective, n int64, forced tasks.Forced, shape tasks.Shape) (tasks.Request, tasks.Plan, error) {
	r, err := b.ReadRequest(coll, b.Segment, b.Job.Topology())
	if err != nil {
		return r, tasks.Plan{}, err
	}
	r.Count *= n
	p := forced.For(coll)
	p.Shape, p.Segment = shape, b.Segment
	return r, choose.Complete(r, b.Job.Topology(), b.Registry, p), nil
}

// RunOnMeter calls f on each rank's meter, or on a simulated machine's.
func (b *Segments) RunOnMeter(ctx context.Context, f func(ctx context.Context, m TaskMeter) error) error {
	if s, ok := b.Job.(kit.Simulated); ok {
		return f(ctx, meter.NewSimulated(s.Topology(), s.Machine, b.Registry))
	}
	return kit.RunRanks(ctx, b.Job, []string{""}, func(ctx context.Context, comms []*planner.Comm) error {
		m, err := tune.NewBench(ctx, comms[0])
		if err != nil {
			return err
		}
		return f(ctx, m)
	})
}
