package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/launch"
	"github.com/tierflow/tierflow/cmd/internal/watch"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/ports"
)

// runCommand returns run.
func runCommand() *cobra.Command {
	var o launch.Options
	var agent, tls, within, dump, metrics, learn string
	var view jobView
	c := &cobra.Command{
		Use:   "run [-n RANKS] [--hosts a:4,b:4] [--] PROGRAM [ARGS]",
		Short: "Launch the processes of a job",
		Long: `Starts PROGRAM once for each rank, watches the processes, passes their output on
with "[rank] " in front, and ends the job when one of them fails, with --min when too few
are left. With --max-restarts another process takes the place of one that has failed, and the ranks of a lost
host move to others that --hostfile or --hosts-command has by then. Each process
finds its place in the environment: TIERFLOW_RANK, TIERFLOW_SIZE, TIERFLOW_RENDEZVOUS
and others, which planner.Join reads. TIERFLOW_MANAGED=1 is there too, unless the
environment has another value: ranks can be asked by tierflow ps, print what they are in on
SIGQUIT, and measure the machine and keep what they find. Programs of other launchers do none
of this.

Without hosts all ranks run here, or, in a Slurm allocation, on its hosts and tasks
through srun. With hosts an agent is started on each through ssh, or whatever
--launcher says; "local" lets this machine play all of them.

Lines come whole, one rank's at a time; a carriage return ends one, too. A terminal also shows what
waits for the rest of its line, such as a prompt, after 100 ms.

The command's standard input goes to rank 0, the others read nothing; --stdin says
otherwise. In a loop over lines of a file give --stdin none, or rank 0 reads the file.
Ranks here get the command's environment. Those on other hosts get of it TIERFLOW_*,
OMP_*, GOMAXPROCS, GOGC, GOMEMLIMIT, GODEBUG and GOTRACEBACK, on top of what their host
gives them. -x adds a variable on all hosts, and shows it on no command line of theirs.

Where a host has a processor for each of its ranks, ranks are bound to equal shares of
them. A rank with one processor (GOMAXPROCS is 1) makes progress with started calls some 10 ms
late while it computes. Its timers may be 1 ms late, so that the threads of its runtime
disturb it less. --bind none leaves all that as it is.

INT, TERM and HUP go to all ranks and end the job: no process is started any more. One that was ignored when the
launcher was started, as INT is behind & in a script, stays ignored: send TERM. Ranks that are
left after --grace, or at a second INT or TERM, are killed.

When ranks fail because of another one, that one is reported, whichever ended first. The
exit status is that of the reported rank (128 + number for a signal),
124 for --timeout, 127 and 126 if the program is missing or can't be run, 2 for wrong
flags or arguments, 125 for everything else.`,
		Example: `  tierflow run -n 8 -- ./train -epochs 3
  tierflow run -np 8 ./train -epochs 3
  tierflow run --hosts a:4,b:4 -x DATA -x LEVEL=2 --log-dir logs -- ./train
  tierflow run --hostfile hosts --map rr --timeout 10m -- ./train
  tierflow run -n 8 --min 6 --max-restarts 20 -- ./train
  tierflow run -n 4 --hosts a:2,b:2 --launcher local -- ./train`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return kit.Usagef("no program: give it after all flags, as in tierflow run -n 4 ./program")
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		// Not interruptible: launch.Run forwards signals to the ranks.
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("ranks") && o.Ranks < 1 {
				return kit.Usagef("--ranks %d: give a number from 1 on, or leave it out for all slots", o.Ranks)
			}
			if c.Flags().Changed("tls") {
				if err := checkTLS(tls, o.Launcher); err != nil {
					return err
				}
				o.Export = append(o.Export, env.TLS+"="+tls)
			}
			if within != "" {
				if _, err := ports.Parse(within); err != nil {
					return kit.Usagef("--ports: %v", err)
				}
				o.Export = append(o.Export, env.Ports+"="+within)
			}
			o.DumpDir = os.Getenv(env.DumpDir)
			if dump != "" {
				full, err := filepath.Abs(dump)
				if err != nil {
					return err
				}
				view.keepDumps(&o, full)
			}
			var err error
			if o.Agent, err = agentWords(agent, metrics); err != nil {
				return err
			}
			o.Program = args
			if err := learnFirst(c, o, learn); err != nil {
				return err
			}
			if err := view.begin(&o); err != nil {
				return err
			}
			status, err := launch.Run(c.Context(), o, c.InOrStdin(), kit.Raw(c.OutOrStdout()), c.ErrOrStderr())
			told := view.end(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return kit.WithStatus(errors.Join(err, told), status)
			}
			return told
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // flags behind the program are its own
	f.IntVarP(&o.Ranks, "ranks", "n", 0, "number of ranks, -np as well (default all slots of the hosts, or the number of CPUs)")
	f.StringVar(&o.Hosts, "hosts", "", "nodes: host[:slots],host[:slots]…")
	f.StringVar(&o.Hostfile, "hostfile", "", "file with a host[:slots] or \"host slots=N\" a line, - for standard input")
	f.StringVar(&o.HostsCommand, "hosts-command", "", "command that prints hosts as in a hostfile, again when a host is lost and --max-restarts lets its ranks move")
	f.StringVar(&o.Launcher, "launcher", "", "local, ssh or a command like rsh (default local without hosts, srun in a Slurm allocation, else ssh)")
	f.StringVar(&o.Map, "map", "block", "placement of ranks: block or rr")
	f.IntVar(&o.Min, "min", 0, "go on as long as so many ranks have not failed, for programs that call Comm.Shrink (default all)")
	f.IntVar(&o.MaxRestarts, "max-restarts", 0, "start so many processes, in all, in the place of failed ones, for programs that call elastic.Run (default none)")
	f.BoolVar(&o.Oversubscribe, "oversubscribe", false, "allow more ranks than slots")
	f.DurationVar(&o.Timeout, "timeout", 0, "end the job after this long (default never)")
	f.DurationVar(&o.Grace, "grace", 0, "time for ranks to end after INT, TERM or HUP, before they are killed (default 30s)")
	f.BoolVar(&o.NoPrefix, "no-prefix", false, "pass output on byte by byte, without \"[rank] \" in front of lines: for data such as JSON")
	f.BoolVar(&o.Timestamps, "timestamps", false, "put the time before each line")
	f.StringVar(&o.LogDir, "log-dir", "", "folder for a file of each rank's output, rank.00.log and so on")
	f.StringVar(&o.Stdin, "stdin", "", "who reads standard input: all, none or a rank (default 0, none with --hostfile -)")
	f.StringArrayVarP(&o.Export, "export", "x", nil, "variable of ranks on all hosts: NAME=VALUE, or NAME as it is here; again for more")
	f.StringVar(&agent, "agent", "", "command line that starts an agent (default this program's path, and agent)")
	f.DurationVar(&o.AgentTimeout, "agent-timeout", 0, "how long an agent may take to answer (default 30s)")
	f.StringVar(&o.Bind, "bind", "", "processors of a rank: "+launch.Bindings+" (default $TIERFLOW_BIND, else share where there is one for each rank)")
	f.StringVar(&tls, "tls", "", "keep what passes between nodes from others, on all ranks: job (by TLS and the job's secret), cert=FILE,key=FILE,ca=FILE[,id=GLOB] (by certificates, the same paths on all hosts) or off (default $TIERFLOW_TLS, else off)")
	f.Lookup("tls").NoOptDefVal = "job"
	f.StringVar(&within, "ports", "", "range of TCP ports for all listeners, on all hosts, such as 40000-40099: one for each rank of a host, and one more where rank 0 is; with --max-restarts twice these on each host (default $TIERFLOW_PORTS, else the system's choice)")
	f.StringVar(&dump, "dump", "", "folder in which ranks keep what they are in when the job stands still or fails, for tierflow diagnose")
	f.StringVar(&view.trace, "trace", "", "file for ui.perfetto.dev with the steps of a sample of calls, :every=16 behind it says of how many one, :every=1 all; .gz is compressed")
	f.StringVar(&view.machine, "machine", "", "show in --trace's file, and in tables, what is predicted on the machine of this file, or assumed")
	f.StringVar(&view.report, "report", "", "file for a browser with where the time of a sample of calls went, :every=16 behind it as for --trace")
	f.StringVar(&metrics, "metrics", "", "serve what ranks do to Prometheus, on each host, such as :9100 (default $TIERFLOW_METRICS, else nowhere)")
	f.StringVar(&learn, "tune", "", "first learn for so long, such as 30s, which plans are fast for the calls in the file that TIERFLOW_PROFILE names; later jobs know them too (default $TIERFLOW_TUNE, else not)")
	f.BoolVar(&o.NodeNames, "node-names", false, "set TIERFLOW_NODE to the host's name on every rank")
	return c
}

// agentWords returns the command line of agents, nil for the usual one. A custom agent gets no
// flag of this program's: it needn't know any.
func agentWords(custom, metrics string) ([]string, error) {
	if custom != "" && metrics != "" {
		return nil, kit.Usagef("--metrics %s: agents of --agent get no such flag; write it into their command line if they know it", metrics)
	}
	metrics = cmp.Or(metrics, os.Getenv(env.Metrics))
	if custom != "" || metrics == "" {
		return strings.Fields(custom), nil
	}
	self, err := os.Executable()
	return []string{self, "agent", "--metrics", metrics}, err
}

// checkTLS complains about --tls. rsh would show the job's secret to the very network it protects
// the job from.
func checkTLS(tls, launcher string) error {
	command, _, _ := strings.Cut(strings.TrimSpace(launcher), " ")
	switch {
	case tls != "off" && tls != "job" && !strings.Contains(tls, "="):
		return kit.Usagef("--tls=%s: allowed are job, cert=FILE,key=FILE,ca=FILE[,id=GLOB] and off", tls)
	case tls == "job" && path.Base(command) == "rsh":
		return kit.Usagef("--tls=job with --launcher %s: rsh carries the job's secret in plain text; use ssh", launcher)
	}
	return nil
}

// withoutNP returns the arguments of tierflow with -np, as mpirun has it, in place of -n for run.
// The program's own arguments stay.
func withoutNP(args []string) []string {
	if len(args) == 0 || args[0] != "run" {
		return args
	}
	args = slices.Clone(args)
	flags := runCommand().Flags()
	for i := 1; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "--"; i++ {
		if number, is := strings.CutPrefix(args[i], "-np"); is {
			args[i] = "-n" + number
		}
		if wantsValue(flags, args[i]) {
			i++
		}
	}
	return args
}

// wantsValue reports whether the word after a flag is the flag's value.
func wantsValue(flags *pflag.FlagSet, word string) bool {
	var flag *pflag.Flag
	if name, long := strings.CutPrefix(word, "--"); long {
		flag = flags.Lookup(name) // nil for NAME=VALUE
	} else if len(word) == 2 {
		flag = flags.ShorthandLookup(word[1:])
	}
	return flag != nil && flag.NoOptDefVal == ""
}

// agentCommand returns the command started by run on each node.
func agentCommand() *cobra.Command {
	var metrics string
	c := &cobra.Command{
		Use: "agent", Short: "Start the ranks of one node for tierflow run", Hidden: true, Args: kit.NoOperands,
		RunE: func(c *cobra.Command, _ []string) error {
			defer serveMetrics(c, metrics)()
			return launch.Agent(c.Context(), c.InOrStdin(), kit.Raw(c.OutOrStdout()), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&metrics, "metrics", "", "serve what ranks do to Prometheus")
	return c
}

// serveMetrics serves metrics until stop is called. Failing that it says so, and the job goes on.
func serveMetrics(c *cobra.Command, address string) (stop func()) {
	if address == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.Context())
	var served sync.WaitGroup
	served.Go(func() {
		if err := watch.ServeMetrics(ctx, address); err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "tierflow: %v\n", err)
		}
	})
	return func() {
		cancel()
		served.Wait()
	}
}
