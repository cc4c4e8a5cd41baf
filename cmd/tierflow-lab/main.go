// Command tierflow-lab is tierflow's laboratory: it measures for the tables of papers,
// compares tierflow with other libraries, and its ways to choose plans with each other.
// Users of the library need none of it: they have tierflow. Here are the root and tree, the
// command to measure the source; the packages below have the other commands.
//
//	tierflow-lab peers --topo 1x4             # beside Open MPI, MPICH and Gloo
//	tierflow-lab shim --topo 1x2              # Open MPI and MPICH with and without tierflow's shim
//	tierflow-lab share bcast --topo 4x2       # how much of the time is spent inside nodes
//	tierflow-lab compare --topo 2x2           # the tuner's methods beside each other
//	tierflow-lab learn --replay set.json      # ways to learn from few measurements
//	tierflow run -n 8 -- tierflow-lab accuracy allreduce --machine m.json
//
// The exit status is that of tierflow's commands.
package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/disturb"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/drawn"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/learn"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/methods"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/peers"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/suite"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/trials"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
)

func main() {
	os.Exit(kit.Execute(context.Background(), root(all.Submodules()), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// root returns the command tierflow-lab with all others.
func root(reg submodules.Registry) *cobra.Command {
	commands := slices.Concat([]*cobra.Command{peers.Command(), peers.ShimCommand(), peers.BoardCommand(), disturb.Command(), drawn.Command(reg), learn.Command(reg), suite.FlakesCommand(), suite.MutantsCommand(), treeCommand()}, trials.Commands(reg), methods.Commands(reg))
	root := kit.NewRoot("tierflow-lab", "Measure tierflow beside other libraries, models and the tables of papers", commands...)
	root.Long = `tierflow-lab has the measurements that papers and recordings need and users do not:
tierflow beside other libraries, its parts beside models, its ways to choose plans
beside each other. Flags such as --topo, --link and --simulate are those of tierflow
bench. Ranks are goroutines, or the processes of tierflow run.`
	return root
}
