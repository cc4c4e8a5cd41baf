package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/levels/printable"
)

// NewRoot returns a program of tierflow's, by its name, with subcommands.
func NewRoot(name, short string, subcommands ...*cobra.Command) *cobra.Command {
	root := Group(name, short, subcommands...)
	root.Version = Version()
	root.AddCommand(&cobra.Command{
		Use: "version", Hidden: true, Args: cobra.NoArgs, // whoever tries it finds it; --help has the flag
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), name, "version", root.Version)
			return err
		},
	})
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	completeAll(root)
	return root
}

// Execute runs the command named by args and returns the exit status. It writes an error to
// stderr; that stdout can't be written is one.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetIn(stdin)
	out := &output{Writer: onScreen(stdout)}
	root.SetOut(out)
	root.SetErr(stderr)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) > 1 && root.HasSubCommands() && !strings.HasPrefix(args[0], "-") && !strings.HasPrefix(args[0], "__") {
		if c, _, _ := root.Find(args[:1]); c == root { // a wrong command is named, not the flags behind it
			args = args[:1]
		}
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if failed := out.end(); err == nil {
		err = failed
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s %s\n", Coloured(stderr, Red, cmd.CommandPath()+":"), printable.Lines(err.Error()))
	if known, ok := errors.AsType[*statusError](err); ok {
		return known.status
	}
	return statusFailed
}

// Group returns a command with subcommands. It does nothing itself.
func Group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: unknownCommand}
	c.AddCommand(subcommands...)
	return c
}

// Moved returns a hidden command that only names its successor.
func Moved(name, to string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return Usagef("this is %s now", to) },
	}
}

// unknownCommand complains that args name no subcommand of c.
func unknownCommand(c *cobra.Command, args []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			known = append(known, sub.Name())
		}
	}
	list := strings.Join(known, ", ")
	if len(args) == 0 {
		return Usagef("no command given; known are %s; --help says more", list)
	}
	return Usagef("unknown command %q; known are %s", args[0], list)
}

// helpCommand returns cobra's, but asking for a missing command is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Say how a command is used", Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(of, rest)
			}
			of.InitDefaultHelpFlag() // as they are when of runs
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
}

// Operand accepts exactly one argument; what describes it in complaints.
func Operand(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return Usagef("no argument; give %s", what)
		case 1:
			return nil
		}
		return Usagef("%d arguments %q; give %s, and nothing else", len(args), args, what)
	}
}

// NoOperands accepts no argument.
func NoOperands(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef("argument %q; there are only flags", args[0])
}
