package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

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
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", cmd.CommandPath(), err)
	var known *statusError
	switch {
	case errors.As(err, &known):
		return known.status
	default:
		return statusFailed
	}
}

// Exit statuses of all subcommands but run.
const (
	statusFailed = 1
	statusUsage  = 2
)

// statusError is an error that chooses the exit status.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// usage makes err the complaint about arguments that it is; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{err, statusUsage}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

func (a app) root() *cobra.Command {
	root := group("tierflow", "Hierarchical collective communication: measure, draw, trace, check and launch it",
		a.benchCommand(), a.planCommand(), a.dagCommand(), a.traceCommand(), a.verifyCommand(), a.infoCommand(), a.tuneCommand(),
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
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.SetHelpCommand(helpCommand())
	return root
}

// group is a command that only has subcommands.
func group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: unknownCommand}
	c.AddCommand(subcommands...)
	return c
}

func unknownCommand(c *cobra.Command, args []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			known = append(known, sub.Name())
		}
	}
	list := strings.Join(known, ", ")
	if len(args) == 0 {
		return usagef("no command given; known are %s; --help says more", list)
	}
	return usagef("unknown command %q; known are %s", args[0], list)
}

// helpCommand is cobra's, but asking for what there isn't is an error.
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

// operand wants exactly one argument, what says which.
func operand(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usagef("no argument; give %s", what)
		case 1:
			return nil
		}
		return usagef("%d arguments %q; give %s, and nothing else", len(args), args, what)
	}
}

func noOperands(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("argument %q; there are only flags", args[0])
}

// exclusive complains if more than one of some flags was given.
func exclusive(c *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if c.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return usagef("%s exclude each other: give one", strings.Join(given, " and "))
}

// interruptible ends a command's context at the first SIGINT or SIGTERM, so that
// it cleans up; the second one kills the process. run doesn't use it: it forwards
// signals.
func interruptible(do func(c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		c.SetContext(ctx)
		return do(c, args)
	}
}
