package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/cmd/tierflow/launch"
)

// runCommand returns run.
func runCommand() *cobra.Command {
	var o launch.Options
	var agent string
	c := &cobra.Command{
		Use:   "run [-n RANKS] [--hosts a:4,b:4] -- PROGRAM [ARGS]",
		Short: "Launch the processes of a job",
		Long: `Starts PROGRAM once for each rank, watches the processes, passes their output on
with "[rank] " in front, and ends the job when one of them fails. Each process
finds its place in the environment: TIERFLOW_RANK, TIERFLOW_SIZE, TIERFLOW_RENDEZVOUS
and others, which planner.Join reads.

Without hosts all ranks run here, or, in a Slurm allocation, on its hosts and tasks
through srun. With hosts an agent is started on each through ssh, or whatever
--launcher says; "local" lets this machine play all of them.

Where a host has a processor for each of its ranks, ranks are bound to equal shares of
them. Timers of a rank that has one processor may be 1 ms late, so that the threads of its
runtime disturb it less. --bind none leaves all that as it is.

The exit status is that of the first rank that failed (128 + number for a signal),
124 for --timeout, 127 and 126 if the program is missing or can't be run, 2 for wrong
flags or arguments, 125 for everything else.`,
		Example: `  tierflow run -n 8 -- ./train -epochs 3
  tierflow run --hosts a:4,b:4 -- ./train
  tierflow run --hostfile hosts --map rr --timeout 10m -- ./train
  tierflow run -n 4 --hosts a:2,b:2 --launcher local -- ./train`,
		Args: func(c *cobra.Command, args []string) error {
			switch at := c.ArgsLenAtDash(); {
			case at < 0 && len(args) > 0 || at > 0:
				return kit.Usagef("argument %q: the program and its arguments follow --", args[0])
			case len(args) == 0:
				return kit.Usagef("no program: give it after --, as in tierflow run -n 4 -- ./program")
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		// Not interruptible: launch.Run forwards signals to the ranks.
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("ranks") && o.Ranks < 1 {
				return kit.Usagef("--ranks %d: give a number from 1 on, or leave it out for all slots", o.Ranks)
			}
			o.Program, o.Agent = args, strings.Fields(agent)
			status, err := launch.Run(c.Context(), o, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return kit.WithStatus(err, status)
			}
			return nil
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // flags behind a program that lacks its -- are the program's
	f.IntVarP(&o.Ranks, "ranks", "n", 0, "number of ranks (default all slots of the hosts, or the number of CPUs)")
	f.StringVar(&o.Hosts, "hosts", "", "nodes: host[:slots],host[:slots]…")
	f.StringVar(&o.Hostfile, "hostfile", "", "file with a host[:slots] or \"host slots=N\" a line, - for standard input")
	f.StringVar(&o.Launcher, "launcher", "", "local, ssh or a command like rsh (default local without hosts, srun in a Slurm allocation, else ssh)")
	f.StringVar(&o.Map, "map", "block", "placement of ranks: block or rr")
	f.BoolVar(&o.Oversubscribe, "oversubscribe", false, "allow more ranks than slots")
	f.DurationVar(&o.Timeout, "timeout", 0, "end the job after this long (default never)")
	f.BoolVar(&o.NoPrefix, "no-prefix", false, "pass output on byte by byte, without \"[rank] \" in front of lines")
	f.StringVar(&agent, "agent", "", "command line that starts an agent (default this program's path, and agent)")
	f.DurationVar(&o.AgentTimeout, "agent-timeout", 0, "how long an agent may take to answer (default 30s)")
	f.StringVar(&o.Bind, "bind", "", "processors of a rank: "+launch.Bindings+" (default $TIERFLOW_BIND, else share where there is one for each rank)")
	f.BoolVar(&o.NodeNames, "node-names", false, "set TIERFLOW_NODE to the host's name on every rank")
	return c
}

// agentCommand returns the command that run starts on each node.
func agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent", Short: "Start the ranks of one node for tierflow run", Hidden: true, Args: kit.NoOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			return launch.Agent(c.Context(), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
}
