package main

import (
	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func (a app) planCommand() *cobra.Command {
	var p problem
	c := &cobra.Command{
		Use:   "plan OP --bytes SIZE",
		Short: "Explain which plan is chosen for a collective, and why",
		Long: `Prints the plan for a collective (` + anyOf(tasks.Requestable()) + `)
of a size on a machine: what was forced and by whom, what was decided and why, and
what else there is. Nothing is run.`,
		Example: `  tierflow plan allreduce --bytes 4MiB --topo 4x2
  tierflow plan bcast --bytes 64KiB --root 3 --plan i=adapt/binomial
  tierflow plan allgather --topo 2x2 --counts 1000,0,1000,3000`,
		Args: operand(whichCollective),
		RunE: func(c *cobra.Command, args []string) error {
			r, t, err := p.one(args[0])
			if err != nil {
				return err
			}
			if _, err := p.forced(a.registry); err != nil {
				return err
			}
			text, err := planner.Explain(r, t, &planner.Options{Plan: p.plan})
			if err != nil {
				return err
			}
			return writeOutput(c.OutOrStdout(), "", []byte(text))
		},
	}
	p.topoFlag(c, "4x2")
	p.requestFlags(c, "1MiB", "size of a rank's buffer")
	p.countsFlag(c)
	p.planFlag(c, planText)
	return c
}
