package trials

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/goal"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// labGoal is the command goal.
type labGoal struct {
	kit.Problem
	reg     submodules.Registry
	file    string   // --machine; empty: the assumed one
	set     []string // --set
	output  string
	request tasks.Request
	on      *levels.Topology
	machine *machine.Machine
}

func goalCommand(reg submodules.Registry) *cobra.Command {
	g := &labGoal{reg: reg}
	c := &cobra.Command{
		Use:   "goal OP",
		Short: "Write the programs of all ranks for other simulators",
		Long: `Writes the programs that tierflow simulate would simulate in GOAL, for LogGOPSim and
ATLAHS. Copies and reductions take as long as on the machine. GOAL has no shared memory:
where nodes have several ranks add --plan s=adapt/binomial.`,
		Example: `  tierflow-lab goal bcast --topo 16x1 --bytes 64KiB -o bcast.goal
  tierflow-lab goal allreduce --topo 4x2 --plan s=adapt/binomial --machine machine.json`,
		Args: kit.Operand(kit.WhichCollective),
		RunE: kit.Checked(g.read, g.run),
	}
	g.AddPlannedFlags(c, kit.PlanText)
	g.AddTableFlag(c)
	f := c.Flags()
	f.StringVar(&g.file, "machine", "", "file of a machine (default one that is assumed)")
	f.StringArrayVar(&g.set, "set", nil, "change a number of the machine, as in copy_byte_ns=0.2; may be given several times")
	f.StringVarP(&g.output, "output", "o", "", "file to write (default standard output)")
	return c
}

// read checks all arguments.
func (g *labGoal) read(args []string) (err error) {
	if g.request, g.on, err = g.ReadPlanned(args[0], g.reg); err != nil {
		return err
	}
	g.machine, err = g.ReadMachine(g.file, g.set...)
	return err
}

// goalStep is about how many bytes of memory a step takes until it is written.
const goalStep = 450

func (g *labGoal) run(ctx context.Context, stdout, stderr io.Writer) error {
	plan, err := g.Decide(g.request, g.on)
	if err != nil {
		return err
	}
	need, err := (&sim.Compilation{Request: g.request, Topology: g.on, Plan: plan, Registry: g.reg, Check: ctx.Err}).Need()
	if err != nil {
		return kit.UsageError(err)
	}
	what, bytes := fmt.Sprintf("writing %d steps of %d ranks", need.Steps, g.on.Size()), need.Steps*goalStep
	if err := kit.CheckMemory(what, bytes, kit.Less); err != nil {
		return err
	}
	bar := kit.NewProgress(stderr, "compiling", kit.NeedText(what, bytes))
	defer bar.Finish()
	all := make([]submodules.Compiled, g.on.Size())
	for rank := range all {
		bar.Show(int64(rank), int64(len(all)))
		if err := ctx.Err(); err != nil {
			return err
		}
		if all[rank], err = submodules.CompileRequest(g.request, g.on, plan, levels.Rank(rank), g.reg); err != nil {
			return kit.UsageError(err)
		}
	}
	schedule, err := goal.FromPrograms(all, g.machine)
	if errors.Is(err, goal.ErrUnsaid) {
		return kit.Usagef("%w; --plan s=adapt/binomial has messages inside nodes too", err)
	}
	if err != nil {
		return kit.UsageError(err)
	}
	return kit.WriteOutput(stdout, g.output, schedule.Format())
}
