package methods

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	tuning "github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// modelling has the flags of models.
type modelling struct {
	tuning.Tuning
	compare bool // --compare
	bytes   []int64
}

// modelsCommand returns models.
func modelsCommand(reg submodules.Registry) *cobra.Command {
	u := &modelling{Tuning: tuning.Tuning{Registry: reg}}
	c := &cobra.Command{
		Use:   "models",
		Short: "Estimate models of bcast algorithms, and compare what they choose",
		Long: `Estimates what one message takes in the context of each of six bcast algorithms, by
ten experiments with it: a bcast and a gather after it, timed on the root. γ(k) is how
many times as long a message takes to k-1 ranks at once as to one (Nuriyev,
Lastovetsky, PaCT 2021, sections 4.1 and 4.2). One rank on each node.

--compare then measures the six algorithms beside each other with every size, and
prints the best one, what the models choose, and what the built-in rule chooses, with
how many percent longer these take than the best (table 3 of that paper). An algorithm
that takes over three times the best by its model is left out.

Pieces are of 8 KiB; a linear bcast is not cut. --simulate takes the times
from a simulation of a machine, so --topo may have hundreds of nodes.`,
		Example: `  tierflow-lab models --topo 4x1
  tierflow-lab models --compare --topo 90x1 --simulate machine.json
  tierflow run -n 16 --hosts a,b,c,d -- tierflow-lab models --compare --json`,
		Args: kit.NoOperands,
		RunE: kit.Interruptible(func(c *cobra.Command, _ []string) error {
			if err := u.readFlags(); err != nil {
				return err
			}
			if u.File != "" {
				s, err := u.ReadSimulated(u.File)
				if err != nil {
					return err
				}
				most := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: u.bytes[len(u.bytes)-1]}
				if _, err := u.SimulatedNeed(c.Context(), s.Topology(), []tasks.Request{most}); err != nil {
					return err
				}
				return u.runModels(c.Context(), &tuning.Rank{
					Simulated: s.MachineName(), Topology: s.Topology(), Meter: tune.NewSimulatedMeter(s.Topology(), s.Machine, u.Registry),
					Asked: c.Context(), Stdout: c.OutOrStdout(), Stderr: c.ErrOrStderr(),
				})
			}
			return u.RunOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), func(stdout, stderr io.Writer) error {
				return u.RunRanks(c.Context(), stdout, stderr, func(_ context.Context, r *tuning.Rank) error {
					return u.runModels(r.Asked, r) // an interrupted one has nothing to show
				})
			})
		}),
	}
	u.AddJobFlags(c)
	f := c.Flags()
	f.StringVar(&u.Bytes, "bytes", "8KiB:4MiB:x2", "sizes to compare; the largest bounds the experiments, too")
	f.DurationVar(&u.Time, "time", 50*time.Millisecond, "most time for one measurement, beyond five samples")
	f.StringVar(&u.File, "simulate", "", kit.SimulateText)
	f.BoolVar(&u.compare, "compare", false, "measure all six algorithms beside what is chosen")
	f.BoolVar(&u.JSON, "json", false, "print JSON")
	return c
}

// modelSegment is the size of pieces, as in the paper.
const modelSegment = 8 << 10

// readFlags reads sizes and times.
func (u *modelling) readFlags() (err error) {
	if u.bytes, err = u.ReadSizes(); err != nil {
		return err
	}
	if most := u.bytes[len(u.bytes)-1]; most < modelSegment {
		return kit.Usagef("--bytes: the largest is %s; experiments need %s, a piece, or more", tasks.FormatBytes(most), tasks.FormatBytes(modelSegment))
	}
	if u.Time <= 0 {
		return kit.Usagef("--time %v: a time is above 0", u.Time)
	}
	u.Stop = stats.Stop{Budget: u.Time}
	return nil
}

// modelled is the output of models.
type modelled struct {
	Topology   string              `json:"topology"`
	Links      string              `json:"links"`
	Stop       string              `json:"stop"`
	Segment    int64               `json:"segment"`
	Seconds    float64             `json:"seconds"` // of the experiments
	Gamma      []float64           `json:"gamma"`   // of 2, 3, … ranks
	Gather     derived.Gather      `json:"gather"`  // behind each bcast
	Algorithms []modelledAlgorithm `json:"algorithms"`
	Choices    *modelChoices       `json:"choices,omitempty"`
}

// modelledAlgorithm is one algorithm's model, with its experiments.
type modelledAlgorithm struct {
	Algorithm string `json:"algorithm"`
	derived.Line
	Off         []float64      `json:"off"` // by experiment: how many times as long as by the line
	Experiments []modelledSize `json:"experiments"`
}

// modelledSize is one experiment.
type modelledSize struct {
	Bytes int64   `json:"bytes"`
	NS    float64 `json:"ns"` // of the bcast and the gather, on the root
}

// runModels estimates and compares on one rank.
func (u *modelling) runModels(ctx context.Context, r *tuning.Rank) error {
	t := u.Job.Topology()
	if t.Nodes() != t.Size() && t.Nodes() > 1 {
		return kit.Usagef("models are of one rank on each node, or of the ranks of one node; %v has %d ranks on %d nodes", t, t.Size(), t.Nodes())
	}
	o := tune.Estimation{Topology: t, Registry: u.Registry, Segment: modelSegment, Most: u.bytes[len(u.bytes)-1], Stop: u.Stop}
	begin := time.Now()
	p, experiments, err := o.Estimate(ctx, r.Meter)
	if err != nil {
		return err
	}
	all := modelled{
		Topology: t.String(), Links: u.LinksOf(r), Stop: tuning.StopText(u.Stop.WithDefaults()), Segment: modelSegment,
		Seconds: kit.Round(time.Since(begin).Seconds(), 1e3), Gamma: p.Gamma.Measured(),
	}
	for _, m := range derived.Models() {
		one := modelledAlgorithm{Algorithm: m.Algorithm, Line: p.Algorithms[m.Algorithm].Line}
		for _, d := range p.Algorithms[m.Algorithm].Off {
			one.Off = append(one.Off, kit.Round(d.Factor, 1e3))
		}
		for _, x := range experiments[m.Algorithm] {
			all.Gather = x.Gather
			one.Experiments = append(one.Experiments, modelledSize{x.Request.Bytes(), x.NS})
		}
		all.Algorithms = append(all.Algorithms, one)
	}
	if u.compare {
		if all.Choices, err = u.compareModels(ctx, r, p); err != nil {
			return err
		}
	}
	if !r.IsFirst() {
		return nil
	}
	return labkit.Print(r.Stdout, u.JSON, all, labkit.Right, all.print)
}

// print prints tables 1 to 3 of the paper.
func (m *modelled) print(w io.Writer) {
	fmt.Fprintf(w, "# %s; %s\n# ends: %s\n# experiments: %.1f s, segments of %s\n", m.Topology, m.Links, m.Stop, m.Seconds, tasks.FormatBytes(m.Segment))
	fmt.Fprintln(w, "P\tγ(P)\t")
	for i, g := range m.Gamma {
		fmt.Fprintf(w, "%d\t%.3f\t\n", i+2, g)
	}
	fmt.Fprintf(w, "\na gather\t%.1f µs and %.1f for each further rank\t\n", m.Gather.First/1e3, m.Gather.Next/1e3)
	fmt.Fprintln(w, "\nalgorithm\tα µs\tβ ns/byte\ta segment µs\t")
	for _, a := range m.Algorithms {
		fmt.Fprintf(w, "%s\t%.2f\t%.4f\t%.1f\t\n", a.Algorithm, a.Alpha/1e3, a.Beta, a.NS(derived.Coeff{Alpha: 1, Beta: float64(m.Segment)})/1e3)
	}
	if m.Choices != nil {
		m.Choices.print(w)
	}
}
