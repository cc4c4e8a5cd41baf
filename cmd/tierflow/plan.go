package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// planning is the command plan.
type planning struct {
	kit.Problem
	explain bool
	pruned  bool
	json    bool
	machine string // --machine; empty: the environment's
}

// planCommand returns plan.
func planCommand(reg submodules.Registry) *cobra.Command {
	p := &planning{}
	c := &cobra.Command{
		Use:   "plan OP --bytes SIZE",
		Short: "Explain which plan is chosen for a collective, and why",
		Long: `Prints the plan for a collective (` + kit.AnyOf(tasks.Requestable()) + `)
of a size on a machine: what was forced and by whom, what was decided and why, and
what else there is. Nothing is run. It is what ranks that are processes choose;
goroutine ranks of a node have s=solo for s=sm.

With a decision table, of --table or ` + env.Table + `, it says which entries of it
the decision is from, what it predicts, and the runners-up. --explain lists every
plan that could be chosen: what the table knows of its time, by prediction and by
measurement, or why tierflow tune does not measure it.

With --machine plans have prices: what they take on that machine, by formulas. Those that
promise most are simulated on it, and the fastest is chosen where no table has an answer. The
runners-up are printed with what they take, and by what that is more.`,
		Example: `  tierflow plan allreduce --bytes 4MiB --topo 4x2
  tierflow plan bcast --bytes 64KiB --root 3 --plan i=adapt/binomial
  tierflow plan allgather --topo 2x2 --counts 1000,0,1000,3000
  tierflow plan bcast --bytes 100000 --topo 3x2 --table table.json --explain
  tierflow plan bcast --bytes 64KiB --topo 64x1 --machine machine.json`,
		Args: kit.Operand(kit.WhichCollective),
		RunE: func(c *cobra.Command, args []string) error {
			r, t, err := p.ReadPlanned(args[0], reg)
			if err != nil {
				return err
			}
			if _, err := p.ReadMachine(p.machine); err != nil {
				return err
			}
			if !p.explain && !p.json {
				text, err := planner.Explain(r, t, p.Options())
				if err == nil {
					_, err = fmt.Fprint(c.OutOrStdout(), text)
				}
				return err
			}
			e, err := tune.Consider(r, t, p.Options(), tune.Space{Heuristics: p.pruned})
			if err != nil {
				return err
			}
			if p.json {
				if !p.explain {
					e.Candidates = e.Candidates[:0]
				}
				return kit.WriteJSON(c.OutOrStdout(), e)
			}
			_, err = fmt.Fprint(c.OutOrStdout(), e)
			return err
		},
	}
	p.AddPlannedFlags(c, kit.PlanText)
	p.AddTableFlag(c)
	f := c.Flags()
	f.StringVar(&p.machine, "machine", "", "file of a machine on which plans are chosen by price, or assumed (default $"+env.Machine+")")
	f.BoolVar(&p.explain, "explain", false, "list every plan that could be chosen")
	f.BoolVar(&p.pruned, "heuristics", false, "with --explain, reject what tuning with heuristics leaves out")
	f.BoolVar(&p.json, "json", false, "print JSON")
	return c
}
