package simulate

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// simulation is the command simulate.
type simulation struct {
	kit.Problem
	file  string // --machine; empty: the assumed one
	trace string // --trace; empty: none
	seed  uint64
	path  int // lines of the critical path
	json  bool
	set   []string // --set
	print bool     // --print-machine

	reg     submodules.Registry
	machine *machine.Machine
	request tasks.Request
	on      *levels.Topology
	isLarge bool // the critical path is left out: there is no memory for it, or one node stands for all
}

// allPlans in place of a plan stands for a plan of every algorithm.
const allPlans = "all"

// libraries are words for plans of other libraries in former versions.
var libraries = []string{"openmpi", "han", "mpich"}

// mostTraced bounds the steps of a trace, at some 200 bytes each.
const mostTraced = 5_000_000

// Command returns simulate.
func Command(reg submodules.Registry) *cobra.Command {
	s := &simulation{reg: reg}
	c := &cobra.Command{
		Use:   "simulate OP",
		Short: "Say how long a collective takes on a machine that a file describes",
		Long: `Simulates a collective (` + kit.AnyOf(tasks.Requestable()) + `)
on a machine: the very programs that its ranks would run, step by step, without ranks,
data or time. So the machine may have thousands of ranks. The same arguments give the
same output everywhere.

--machine names a file of JSON: latency, time per byte and overheads of each level,
the ranks' speed at copies and reductions. Package costs/machine has the keys.
With it the plan is the one that costs least on that machine, unless it is forced.
Without it the numbers are assumed: Gigabit Ethernet. tierflow bench p2p writes one of
the machine at hand; --print-machine prints the one that is simulated, with all keys and a
link for each level of --topo, as a file to begin with; --set i.byte_ns=0.8 changes a number
of level i's link, --set copy_byte_ns=0.2 one of the ranks. loggops:L=2500,o=1500,g=1000,G=6,O=0,S=65535 in place of a file has
the parameters of LogGOPSim, for nodes of one rank.

What would take a minute and more, or more memory than there is, is simulated on one node
alone, if that stands for all: nodes are equal, and a ring's, or as many as a power of two,
as an alltoall's are. Else a simulation that needs more than half of the memory is refused.

It prints the time, how busy the links are, and the critical path: what held up
the end, by task and by cause. --trace writes a file for ui.perfetto.dev.
--plan all simulates the catalogue: plans of every shape and every algorithm between nodes,
and marks what would be chosen on the machine, and by the built-in rule.`,
		Example: `  tierflow simulate allreduce --topo 64x12 --bytes 4MiB
  tierflow simulate allreduce --topo 128x32 --bytes 4MiB --plan shape=han,fs=64KiB
  tierflow simulate bcast --topo 512x1 --bytes 64KiB --plan all
  tierflow simulate bcast --topo 4x2 --bytes 1MiB --path 20 --trace trace.json
  tierflow simulate --print-machine --topo racks.json > machine.json
  tierflow simulate allreduce --topo 64x12 --set i.byte_ns=0.08 --set i.latency_ns=5000`,
		Args: func(c *cobra.Command, args []string) error {
			if s.print {
				return kit.NoOperands(c, args)
			}
			return kit.Operand(kit.WhichCollective)(c, args)
		},
		RunE: kit.Checked(s.read, s.run),
	}
	s.AddPlannedFlags(c, kit.PlanText+"; or all")
	s.AddTableFlag(c)
	f := c.Flags()
	s.addMachineFlags(c)
	f.StringVar(&s.trace, "trace", "", "file to write a Perfetto trace to, - for standard output")
	f.BoolVar(&s.print, "print-machine", false, "print the machine as a file and simulate nothing")
	f.IntVar(&s.path, "path", 0, "how many lines of the critical path to print, the longest ones")
	c.AddCommand(trainCommand(reg))
	return c
}

// addMachineFlags adds --machine, --set, --seed and --json.
func (s *simulation) addMachineFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.file, "machine", "", "file of a machine (default one that is assumed)")
	f.StringArrayVar(&s.set, "set", nil, "change a number of the machine, as in i.byte_ns=0.8; may be given several times")
	f.Uint64Var(&s.seed, "seed", 0, "chooses the noise, if the machine has any; 0: none")
	f.BoolVar(&s.json, "json", false, "print JSON")
}

// read checks all arguments.
func (s *simulation) read(args []string) (err error) {
	if s.print {
		if s.on, err = s.ReadTopology(); err != nil {
			return err
		}
		s.machine, err = kit.ReadMachine("machine", s.file)
		return err
	}
	if s.request, s.on, err = s.ReadOne(args[0]); err != nil {
		return err
	}
	if err := s.CheckTable(); err != nil {
		return err
	}
	if s.Plan == allPlans {
		if s.trace != "" || s.path != 0 {
			return kit.Usagef("--plan all: --trace and --path show one plan; give one")
		}
	} else if slices.Contains(libraries, s.Plan) {
		return kit.Usagef("--plan %s: the plans of other libraries are simulated by tierflow-lab decisions now", s.Plan)
	} else if _, err := s.ReadForced(s.reg); err != nil {
		return err
	}
	if s.path < 0 {
		return kit.Usagef("--path %d: give a number of lines, 0 for none", s.path)
	}
	return s.readMachine()
}

// readMachine reads --machine and --set. The machine must have a link for each level that a message uses.
func (s *simulation) readMachine() (err error) {
	if s.machine, err = s.ReadMachine(s.file, s.set...); err != nil {
		return err
	}
	for k := range s.on.Depth() {
		if _, err := s.machine.Link(s.on.Level(k)); err != nil && s.on.IsUsed(k) {
			return kit.Usagef("--topo: %w; tierflow simulate --print-machine with this --topo writes a file for --machine to begin with", err)
		}
	}
	return nil
}

// printMachine prints the machine with a link for each level of the topology.
func (s *simulation) printMachine(stdout io.Writer) error {
	m, err := s.machine.For(s.on)
	if err != nil {
		return kit.UsageError(err)
	}
	if m, err = m.Set(s.set...); err != nil {
		return kit.Usagef("--set %w", err)
	}
	data, err := m.FormatAll()
	if err != nil {
		return kit.UsageError(err)
	}
	return kit.WriteOutput(stdout, "-", data)
}

func (s *simulation) run(ctx context.Context, stdout, stderr io.Writer) error {
	if s.print {
		return s.printMachine(stdout)
	}
	if s.Plan == allPlans {
		rows, err := s.compare(ctx, stderr)
		if err != nil {
			return err
		}
		return kit.WriteResult(stdout, s.json, rows, func() []byte { return s.tableText(rows) })
	}
	plan, err := s.Decide(s.request, s.on)
	if err != nil {
		return err
	}
	job, bar, err := s.makeJob(s.compilation(ctx, plan), stderr)
	if err != nil {
		return err
	}
	defer bar.Finish()
	var rec recorder
	options := sim.Options{Seed: s.seed, Path: !s.isLarge, Check: func(steps int64) error {
		bar.Show(steps, job.Steps()/int64(job.StandsFor()))
		return ctx.Err()
	}}
	if s.trace != "" {
		if job.Steps() > mostTraced {
			return kit.Usagef("--trace: %d steps; a trace has at most %d", job.Steps(), mostTraced)
		}
		options.Watch = rec.add
	}
	rec.job, rec.on = job, s.on
	if options.Watch == nil && job.Steps() <= mostDescribed {
		options.Watch = rec.addEnds
	}
	result, err := job.Run(s.machine, options)
	if err != nil {
		return kit.UsageError(err)
	}
	bar.Finish()
	path := viz.SimulatedPath(job, result)
	if s.trace != "" {
		if err := kit.WriteOutput(stdout, s.trace, viz.Perfetto(rec.events, path...)); err != nil || s.trace == "-" {
			return err
		}
	}
	return kit.WriteResult(stdout, s.json, s.report(plan, job, result, path), func() []byte { return s.text(plan, job, result, &rec.ends, path) })
}
