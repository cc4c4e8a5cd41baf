package rules

import (
	"fmt"
	"go/token"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/submodules"
)

// whichFile describes the operand of most commands.
const whichFile = "a file of rules"

// Command returns rules with its subcommands.
func Command(reg submodules.Registry) *cobra.Command {
	c := kit.Group("rules", "Check, format and explain rules that choose plans",
		checkCommand(reg), formatCommand(), explainCommand(reg), convertCommand(), compileCommand(), showCommand(), distillCommand(reg))
	c.Long = `Rules say which plan a collective gets, by layout, size and machine. A file of them is text:

  bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default

` + env.Rules + ` or Options.Rules names it. Rules decide what is not forced, before a decision
table does. go doc github.com/tierflow/tierflow/planner/rules has the language. Conditions ask about

` + parameters()
	return c
}

func showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the built-in rules",
		Long: `Prints the rules that choose where nobody else does, as a file of rules. They are for parts of
plans: the shape, the segments and who does each kind of tasks. A file may have such rules
too. They are asked before the built-in ones.`,
		Example: "  tierflow rules show > my.rules",
		Args:    kit.NoOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), builtin.Text)
			return err
		},
	}
}

// parameters lists the parameters of conditions.
func parameters() string {
	var b strings.Builder
	for _, p := range rules.Parameters() {
		fmt.Fprintf(&b, "  %-12s %s\n", p.Name, p.Doc)
	}
	return strings.TrimRight(b.String(), "\n")
}

func checkCommand(reg submodules.Registry) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Find what rules can't mean",
		Long: `Reads a file of rules, and finds what can't be meant: rules that nothing comes to, conditions
that always or never hold where they stand, and plans that no rank can compile. Plans are
tried on layouts of up to 64 ranks, at sizes around the numbers in the rules. The exit
status is 1 if there is such a thing. Plans that fit some layouts only are notes.`,
		Example: "  tierflow rules check my.rules",
		Args:    kit.Operand(whichFile),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := choose.LoadRules(args[0], reg)
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			broken, partly := choose.CheckRules(b, reg)
			found := append(b.Check(), broken...)
			for _, f := range found {
				fmt.Fprintf(out, "%s:%d:%d: %s\n", args[0], f.Line, f.Column, f.Message)
			}
			for _, f := range partly {
				fmt.Fprintf(out, "%s:%d:%d: note: %s\n", args[0], f.Line, f.Column, f.Message)
			}
			n := len(b.Leaves())
			fmt.Fprintf(out, "%d plan%s, %d complaint%s\n", n, kit.Plural(n), len(found), kit.Plural(len(found)))
			if len(found) > 0 {
				return fmt.Errorf("%s: %d complaint%s", args[0], len(found), kit.Plural(len(found)))
			}
			return nil
		},
	}
}

// readRules reads a file of rules.
func readRules(name string) (*rules.Base, error) {
	text, err := files.Read(name, rules.MaxBytes)
	if err != nil {
		return nil, err
	}
	return rules.Parse(name, string(text))
}

func formatCommand() *cobra.Command {
	var write bool
	c := &cobra.Command{
		Use:   "fmt FILE",
		Short: "Print rules in the usual layout",
		Long: `Prints a file of rules in the usual layout, with its comments. It decides the same. -w
writes it back to the file.`,
		Example: "  tierflow rules fmt -w my.rules",
		Args:    kit.Operand(whichFile),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := readRules(args[0])
			if err != nil {
				return err
			}
			name := ""
			if write {
				name = args[0]
			}
			return kit.WriteOutput(c.OutOrStdout(), name, []byte(b.Format()))
		},
	}
	c.Flags().BoolVarP(&write, "write", "w", false, "write to the file")
	return c
}

func compileCommand() *cobra.Command {
	var output, pkg, function string
	c := &cobra.Command{
		Use:   "compile FILE",
		Short: "Write a Go function that decides as rules do",
		Long: `Writes Go source of a function that decides as a file of rules does, without reading any
file when the program runs. Options.Decide has it asked. Named values are as the file has
them. Plans with formulas can't be in it.`,
		Example: "  tierflow rules compile my.rules --package main -o decide.go",
		Args:    kit.Operand(whichFile),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := readRules(args[0])
			if err != nil {
				return err
			}
			if !token.IsIdentifier(pkg) || !token.IsIdentifier(function) {
				return kit.Usagef("--package %s --function %s: allowed are names of Go", pkg, function)
			}
			source, err := b.Source(pkg, function)
			if err != nil {
				return err
			}
			return kit.WriteOutput(c.OutOrStdout(), output, []byte(source))
		},
	}
	c.Flags().StringVar(&pkg, "package", "main", "package of the function")
	c.Flags().StringVar(&function, "function", "decide", "name of the function")
	c.Flags().StringVarP(&output, "output", "o", "", "file to write (default standard output)")
	return c
}

func explainCommand(reg submodules.Registry) *cobra.Command {
	p := &kit.Problem{}
	c := &cobra.Command{
		Use:   "explain FILE OP",
		Short: "Say what rules decide for a collective, and by which conditions",
		Long: `Prints the plan that a file of rules leads to, the line that decides, and the conditions on
its way. Where the rules leave it open the others decide: a table, prices, the built-in rule.`,
		Example: "  tierflow rules explain my.rules bcast --bytes 64KiB --topo 4x2",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return kit.Usagef("%d arguments; give %s and %s", len(args), whichFile, kit.WhichCollective)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			r, t, err := p.ReadPlanned(args[1], reg)
			if err != nil {
				return err
			}
			o := p.Options()
			o.Rules = args[0]
			text, err := planner.Explain(r, t, o)
			if err == nil {
				_, err = fmt.Fprint(c.OutOrStdout(), text)
			}
			return err
		},
	}
	p.AddPlannedFlags(c, kit.PlanText)
	return c
}
