package rules

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/distill"
	"github.com/tierflow/tierflow/submodules"
)

func distillCommand(reg submodules.Registry) *cobra.Command {
	var b distill.Bounds
	var output string
	c := &cobra.Command{
		Use:   "from-table TABLE",
		Short: "Make few rules of a decision table",
		Long: `Makes a small decision tree of the entries of each collective, over nodes, ranks a node, bytes
and layout, and writes it as rules. Slowdown is the time of what rules choose by the fastest
plan's. Comments at the top say what each collective's rules cost, and what a tree costs for
sizes that it was not made of. Convert makes files for other libraries of them.`,
		Example: "  tierflow rules from-table table.json --slowdown 1.02 -o my.rules",
		Args:    kit.Operand("a decision table"),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := choose.LoadTable(args[0], reg)
			if err != nil {
				return err
			}
			made, err := distill.Rules(t, b)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return kit.WriteOutput(c.OutOrStdout(), output, []byte(costs(made)+"\n"+made.Text))
		},
	}
	c.Flags().Float64Var(&b.Mean, "slowdown", 1.02, "most slowdown on average over the points of a collective")
	c.Flags().Float64Var(&b.Worst, "worst", 1.15, "most slowdown of a point to which pruning may lead")
	c.Flags().IntVar(&b.Most, "rules", 40, "most rules of a collective")
	c.Flags().StringVarP(&output, "output", "o", "", "file to write (default standard output)")
	return c
}

// costs returns comments about the costs of rules.
func costs(made *distill.Made) string {
	var b strings.Builder
	for _, c := range made.Collectives {
		fmt.Fprintf(&b, "# %s: %d rule%s, %d deep, of %d points: slowdown %.3f on average, %.2f at worst\n",
			c.Collective, c.Rules, kit.Plural(c.Rules), c.Depth, c.Points, c.Mean, c.Worst)
		if n := c.HeldOut - c.Unknown; n > 0 {
			fmt.Fprintf(&b, "#   %d sizes held out: %.3f on average, %.2f at worst", n, c.HeldMean, c.HeldMost)
			if c.Unknown > 0 {
				fmt.Fprintf(&b, "; of %d more nobody knows the time", c.Unknown)
			}
			b.WriteByte('\n')
		}
		if c.Left > 0 {
			fmt.Fprintf(&b, "#   %d point%s left out: rules can't ask for the layout or operation\n", c.Left, kit.Plural(c.Left))
		}
	}
	return b.String()
}
