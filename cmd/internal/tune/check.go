package tune

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// checkCommand returns tune check.
func checkCommand(reg submodules.Registry) *cobra.Command {
	u := &Tuning{Registry: reg}
	var fix bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a decision table against performance guidelines",
		Long: `Checks that a decision table can be read, and lists entries that no machine should
give: a collective slower than others that do the same (allreduce than reduce and
bcast), more bytes much faster than fewer, a choice that loses to the flat shape.
Overlapping intervals of measurements are no violation. The exit status is 1 if there
is one.

--simulate checks the table on a described machine, too: no plan takes less than its
bytes on the wire, the choice takes as long as the table says, and no longer than the
built-in rule's plan. A table of the assumed machine is checked so anyway.

--fix measures the candidates of these entries again on --topo and --link, or the
ranks of a launched job, and writes the file anew.`,
		Example: `  tierflow tune check table.json
  tierflow tune check table.json --simulate machine.json
  tierflow tune check table.json --fix --topo 4x2`,
		Args: kit.Operand("the file of a decision table"),
		RunE: kit.Interruptible(func(c *cobra.Command, args []string) error {
			u.output = args[0]
			if !fix {
				t, err := choose.LoadTable(u.output, u.Registry)
				if err != nil {
					return err
				}
				return u.reportViolations(c.Context(), c.OutOrStdout(), t)
			}
			u.resume = true
			return u.runOnJob(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), u.fixTable)
		}),
	}
	u.AddFlags(c)
	u.AddSimulateFlag(c)
	u.AddSizeFlags(c, "4B", "16MiB")
	c.Flags().BoolVar(&fix, "fix", false, "measure the entries again")
	c.Flags().BoolVar(&u.JSON, "json", false, "print JSON")
	for _, name := range []string{"min", "max", "bytes", "ops", "shapes", "submodules", "segments", "inner", "windows", "numbers", "plan"} {
		_ = c.Flags().MarkHidden(name) // the table says
	}
	return c
}

// fixTable measures violating entries again on one rank.
func (u *Tuning) fixTable(ctx context.Context, r *Rank) error {
	table, err := u.loadTable(ctx, r)
	if err != nil {
		return err
	}
	like := func(coll tasks.Collective, bytes int64) (tasks.Request, error) {
		return u.ReadRequest(coll, bytes, r.Topology)
	}
	n, err := tune.Remeasure(ctx, r.Meter, table, r.Topology, u.LinksOf(r), u.Stop, like)
	if err != nil || !r.IsFirst() {
		return err
	}
	data, err := table.Encode()
	if err == nil {
		err = kit.WriteOutput(r.Stdout, u.output, data)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Stderr, "%d entr%s measured again\n", n, map[bool]string{true: "y", false: "ies"}[n == 1])
	return u.reportViolations(ctx, r.Stdout, table)
}

// violationsOnMachine checks a table on the machine of --simulate, or on the assumed one if its times were
// simulated there. It says where in words; empty: nowhere.
func (u *Tuning) violationsOnMachine(ctx context.Context, t *table.Table) (all []tune.Violation, where string, err error) {
	if u.File == "" && t.Provenance.Simulated != kit.MachineText("", machine.Assumed()) {
		return nil, "", nil
	}
	m, err := kit.ReadMachine("simulate", u.File)
	if err != nil {
		return nil, "", err
	}
	all, n, err := tune.ViolationsOn(ctx, m, t, u.Registry, u.ReadRequest)
	return all, fmt.Sprintf(", %d of them simulated on %s", n, kit.MachineText(u.File, m)), err
}

// reportViolations prints the violations of guidelines. It is an error if there are
// any.
func (u *Tuning) reportViolations(ctx context.Context, out io.Writer, t *table.Table) error {
	all := tune.Violations(t)
	onMachine, on, err := u.violationsOnMachine(ctx, t)
	if err != nil {
		return err
	}
	all = append(all, onMachine...)
	if u.JSON {
		if all == nil {
			all = []tune.Violation{}
		}
		if err := kit.WriteJSON(out, map[string]any{"entries": len(t.Entries), "violations": all}); err != nil {
			return err
		}
	} else {
		for _, v := range all {
			fmt.Fprintln(out, v)
		}
		fmt.Fprintf(out, "%d entries%s, %d violation%s\n", len(t.Entries), on, len(all), kit.Plural(len(all)))
	}
	if len(all) > 0 {
		return fmt.Errorf("%s: %d violation%s of guidelines", u.output, len(all), kit.Plural(len(all)))
	}
	return nil
}
