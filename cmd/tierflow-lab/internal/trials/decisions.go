package trials

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/fixed"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// labDecisions is the command decisions.
type labDecisions struct {
	kit.Problem
	reg     submodules.Registry
	file    string // --machine; empty: the assumed one
	json    bool
	request tasks.Request
	on      *levels.Topology
	machine *machine.Machine
}

func decisionsCommand(reg submodules.Registry) *cobra.Command {
	b := &labDecisions{reg: reg}
	c := &cobra.Command{
		Use:   "decisions OP",
		Short: "Simulate the plans that other libraries decide on",
		Long: `Simulates the plans that Open MPI's tuned, its HAN and MPICH decide on by fixed
thresholds (` + strings.Join(fixed.Names(), ", ") + `), beside the one that tierflow chooses: by price with
--machine, by the built-in rule without it. Links, copies and messages are alike for all.
A plan has tierflow's algorithm of the same kind, or the closest one. The output names
both. tierflow simulate --plan simulates one of these plans in detail.`,
		Example: `  tierflow-lab decisions bcast --topo 64x4 --bytes 64KiB
  tierflow-lab decisions allreduce --topo 16x8 --bytes 1MiB --machine machine.json --json`,
		Args: kit.Operand(kit.WhichCollective),
		RunE: kit.Checked(b.read, b.run),
	}
	b.AddTopoFlag(c, "4x2")
	b.AddRequestFlags(c, "1MiB", kit.BytesText)
	c.Flags().StringVar(&b.file, "machine", "", "file of a machine (default one that is assumed)")
	c.Flags().BoolVar(&b.json, "json", false, "print JSON")
	return c
}

// read checks all arguments.
func (b *labDecisions) read(args []string) (err error) {
	if b.request, b.on, err = b.ReadOne(args[0]); err != nil {
		return err
	}
	b.machine, err = b.ReadMachine(b.file)
	return err
}

// decision is a library's plan and its time.
type decision struct {
	Library string  `json:"library"` // or tierflow, with the plan it chooses
	Plan    string  `json:"plan"`
	Theirs  string  `json:"theirs,omitempty"`  // the library's name for it
	Closest string  `json:"closest,omitempty"` // the plan's stand-in for something missing in tierflow
	NS      float64 `json:"simulated_ns"`
	Ratio   float64 `json:"ratio"` // of the time to that of tierflow's plan
}

func (b *labDecisions) run(ctx context.Context, stdout, _ io.Writer) error {
	ours, err := b.Decide(b.request, b.on)
	if err != nil {
		return err
	}
	all := []decision{{Library: "tierflow", Plan: ours.String()}}
	plans := []tasks.Plan{ours}
	for _, lib := range fixed.Libraries() {
		d, err := lib.Decide(b.request, b.on)
		if err != nil {
			return kit.UsageError(err)
		}
		all = append(all, decision{Library: lib.Name, Plan: d.Plan.String(), Theirs: d.Theirs, Closest: d.Closest})
		plans = append(plans, d.Plan)
	}
	for i, p := range plans {
		if all[i].NS, err = b.simulate(ctx, p); err != nil {
			return kit.UsageError(fmt.Errorf("%s: %w", all[i].Library, err))
		}
		all[i].Ratio = 1
		if all[0].NS > 0 {
			all[i].Ratio = kit.Round(all[i].NS/all[0].NS, 1e3)
		}
	}
	return labkit.Print(stdout, b.json, all, labkit.Left, func(w io.Writer) { b.print(w, all) })
}

// simulate returns a plan's time on the machine, ns.
func (b *labDecisions) simulate(ctx context.Context, p tasks.Plan) (float64, error) {
	c := &sim.Compilation{Request: b.request, Topology: b.on, Plan: p, Registry: b.reg, Check: ctx.Err}
	if _, err := kit.CheckSimulation(c, 1); err != nil {
		return 0, err
	}
	return labkit.Simulate(ctx, c, b.machine, 0)
}

// print writes a line for each library.
func (b *labDecisions) print(w io.Writer, all []decision) {
	fmt.Fprintf(w, "%v on %v, simulated on %s\n", b.request, b.on, kit.MachineText(b.file, b.machine))
	fmt.Fprintln(w, "library\tµs\tto tierflow\tplan\tstands for")
	for _, d := range all {
		theirs := d.Theirs
		if d.Closest != "" {
			theirs += "; the closest here: " + d.Closest
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.2f\t%s\t%s\n", d.Library, d.NS/1e3, d.Ratio, d.Plan, theirs)
	}
}
