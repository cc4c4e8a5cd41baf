package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
)

// app is what the subcommands share.
type app struct {
	registry submodules.Registry // what verify, dag and info know
}

// run is the whole program: it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return app{all.Submodules()}.run(ctx, args, stdin, stdout, stderr)
}

func (a app) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(ctx, a.root(), args, stdin, stdout, stderr)
}

func (a app) root() *cobra.Command {
	root := newRoot("Hierarchical collective communication: measure, draw, trace, check and launch it",
		group("bench", "Measure collectives and their tasks", append(benchCommands(a.registry), benchPeersCommand())...),
		a.planCommand(), dagCommand(a.registry), traceCommand(a.registry), verifyCommand(a.registry), a.infoCommand(), tuneCommand(a.registry),
		runCommand(), agentCommand())
	root.Long = `tierflow compiles MPI-style collectives for hierarchical machines and runs them
between Go processes or goroutines. This command measures, draws, traces and
checks them, and launches jobs.

Without a launcher subcommands run on goroutine ranks arranged by --topo: 4x2 is
4 nodes of 2 ranks, 2x2x4 has NUMA domains inside nodes, a:3,b:1 names nodes of
unequal size, /rr deals ranks round robin, and a file of JSON describes the rest.
Plans are words such as shape=han,fs=256KiB,w=4,i=adapt/chain/32KiB,s=sm; what a
plan leaves open is chosen as always.`
	root.Version = version()
	return root
}
