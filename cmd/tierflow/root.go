package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/internal/docs"
	"github.com/tierflow/tierflow/cmd/internal/doctor"
	"github.com/tierflow/tierflow/cmd/internal/draw"
	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/mpi"
	"github.com/tierflow/tierflow/cmd/internal/rules"
	"github.com/tierflow/tierflow/cmd/internal/simulate"
	"github.com/tierflow/tierflow/cmd/internal/torch"
	"github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/internal/verify"
	"github.com/tierflow/tierflow/cmd/internal/watch"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
)

// run runs the whole program and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	warnOfVariables(args, stderr)
	return kit.Execute(ctx, rootCommand(all.Submodules()), withoutNP(args), stdin, stdout, stderr)
}

// warnOfVariables warns of unknown variables beginning like tierflow's. The ranks of a job do it
// on joining.
func warnOfVariables(args []string, stderr io.Writer) {
	if kit.IsLaunched() || len(args) > 0 && slices.Contains([]string{"run", "agent"}, args[0]) {
		return
	}
	for _, u := range env.Unknown(os.Environ()) {
		fmt.Fprintln(stderr, "tierflow: warning:", u)
	}
}

// rootCommand returns the command tierflow with all others. They choose from the submodules of
// reg.
func rootCommand(reg submodules.Registry) *cobra.Command {
	root := kit.NewRoot("tierflow", "Hierarchical collective communication: measure, draw, trace, check and launch it",
		kit.Group("bench", "Measure collectives and their tasks", append(bench.Commands(reg), movedFromBench()...)...),
		planCommand(reg), draw.DagCommand(reg), draw.TraceCommand(reg), simulate.Command(reg), verify.Command(reg), infoCommand(reg), tuneCommand(reg), rules.Command(reg),
		doctor.Command(), watch.PsCommand(), watch.DiagnoseCommand(), watch.TopCommand(), watch.MetricsCommand(), mpi.Command(), torch.Command(), docs.Command(guide, "guide"), runCommand(), agentCommand())
	root.Long = `tierflow compiles MPI-style collectives for hierarchical machines and runs them
between Go processes or goroutines. This command measures, draws, traces and
checks them, launches jobs, and examines where they run.

Without a launcher subcommands run on goroutine ranks arranged by --topo: 4x2 is
4 nodes of 2 ranks, 2x2x4 has NUMA domains inside nodes, a:3,b:1 names nodes of
unequal size, /rr deals ranks round robin, and a file of JSON describes the rest.
Plans are words such as shape=han,fs=256KiB,w=4,i=adapt/chain/32KiB,s=sm; what a
plan leaves open is chosen as always. tierflow docs shows the guide.`
	return root
}

// movedFromBench returns answers to callers of bench's former commands.
func movedFromBench() (all []*cobra.Command) {
	for _, name := range []string{"accuracy", "algorithms", "disturb", "overlap", "peers", "share"} {
		all = append(all, kit.Moved(name, "tierflow-lab "+name))
	}
	return all
}

// tuneCommand returns tune, with answers to callers of its former commands.
func tuneCommand(reg submodules.Registry) *cobra.Command {
	c := tune.Command(reg)
	for _, name := range []string{"compare", "models", "validate"} {
		c.AddCommand(kit.Moved(name, "tierflow-lab "+name))
	}
	return c
}
