package planner

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// PlanVariable is the environment variable that forces plans.
const PlanVariable = "TIERFLOW_PLAN"

// CongestionVariable is the environment variable that names a TCP congestion control.
const CongestionVariable = "TIERFLOW_CONGESTION"

// LinksVariable is the environment variable that names the links between nodes, see
// [Options.Links].
const LinksVariable = "TIERFLOW_LINKS"

// Options are what a communicator may be told. The zero value and nil are ready
// to use.
type Options struct {
	// Plan forces plans, in the grammar of [tasks.ParseForced]; what it leaves
	// open is decided as always. Empty: the environment's TIERFLOW_PLAN.
	Plan string
	// Deterministic makes reductions give the same bits for all layouts of the ranks
	// and all plans: it puts order=tree before the plans of Plan or the environment.
	// Plans forced by these still apply. If one can't keep the order, creating the
	// collective fails, and the error lists those that can.
	Deterministic bool
	// Table names a file with a decision table, as tierflow tune writes it. The table
	// decides all that Plan leaves open; where it has no answer the built-in rule
	// does. In a job of processes rank 0's counts, for all ranks. Empty: the
	// environment's TIERFLOW_TABLE; if that is empty too, no table.
	Table string
	// TableData is the content of such a file, in place of Table.
	TableData []byte
	// MeasuredTable refuses a table whose times were simulated: joining, or making goroutine
	// ranks, fails with an error that names the table and the machine it was simulated on.
	// Of processes rank 0's counts, which has the table.
	MeasuredTable bool
	// Machine says what is known of the machine. Where neither Plan nor a table decides, plans
	// are then chosen by their prices on it, and the built-in rule's plan is one of several.
	//
	//	a file's name   a machine's file, as tierflow bench p2p writes it
	//	measure         the ranks measure it when the communicator is made: links in some
	//	                hundredths of a second, and a few MiB between few pairs of ranks. All
	//	                use what rank 0 makes of it. What can't be measured is as if it
	//	                were off, and Explain says why
	//	measure:FILE    the same, and rank 0 keeps the machine in a file. A later job of the
	//	                same ranks reads it there and measures nothing
	//	off             nothing is known, and the built-in rule decides
	//
	// In a job of processes rank 0's counts, for all ranks. Empty: the environment's
	// TIERFLOW_MACHINE; if that is empty too, off: then the same program has the same plans
	// on every run, and no job waits for a measurement.
	Machine string
	// MachineData is the content of such a file, in place of Machine.
	MachineData []byte
	// Log gets failures and stall reports. nil: none; but ranks that are processes
	// then report stalls to [slog.Default], which is standard error unless the
	// program says otherwise: nobody else could say why a job stands still.
	Log *slog.Logger
	// StallAfter is how long a collective waits before Log hears what for.
	// 0: 10 s; negative: never.
	StallAfter time.Duration
	// CloseTimeout bounds the wait of Close, on ranks that are processes, for living
	// ranks that have not closed yet. Then Close leaves, and its error names them.
	// Give more if ranks have much to do after their last collective. 0: 30 s.
	CloseTimeout time.Duration
	// Recorder is a file in which each rank keeps its last events, for tierflow trace
	// --recorder to read even after a kill -9; %r stands for the rank. Empty: the
	// environment's TIERFLOW_RECORDER; if that is empty too, no file. A further job
	// of the process while the first is open has .w2 at the end of its files, and so
	// on, see [executor.World.Record].
	Recorder string
	// DumpOnQuit makes SIGQUIT print what each rank waits for to standard error, see
	// [executor.World.Dump]; so does TIERFLOW_DUMP=1 in the environment. The process
	// goes on, unless it gets a second SIGQUIT within a second.
	DumpOnQuit bool
	// Congestion is the TCP congestion control of this rank's connections to other
	// nodes, one that the kernel has and allows, such as reno; creating the communicator
	// fails otherwise. Empty: the environment's TIERFLOW_CONGESTION; if that is empty
	// too, the system's choice.
	Congestion string
	// Hooks watch every step, see package trace. Zero: none.
	Hooks trace.Hooks
	// NoPeerReads keeps processes of a node from copying straight from each other's
	// memory, as if the kernel forbade it; shared memory serves instead.
	NoPeerReads bool
	// NoSpread leaves it to the kernel where processes begin to run. Else Join moves each
	// once to a share of its node's processors, if all may run on the same and there are
	// enough; none stays bound.
	NoSpread bool
	// Link makes messages between goroutine ranks take their time, see
	// [local.NewNetwork]. nil: they don't.
	Link local.Shaper
	// Links names the links between nodes and their rate, such as 10gbit. Decision tables
	// are measured and asked under that name: what one has of other links is from
	// elsewhere. In a job of processes that of rank 0 counts. Empty: the environment's
	// TIERFLOW_LINKS; if that is empty too, they are unknown, but those of goroutine ranks
	// without Link are [table.SharedMemory].
	Links string
}

func (o *Options) config() executor.Config {
	return executor.Config{
		StallAfter: o.StallAfter, CloseTimeout: o.CloseTimeout, Log: o.Log, Hooks: o.Hooks,
	}
}

// congestion is the congestion control that the options or the environment name.
func (o *Options) congestion() string { return cmp.Or(o.Congestion, os.Getenv(CongestionVariable)) }

// forced reads the plans that the options or the environment force.
func (o *Options) forced(reg submodules.Registry) (f tasks.Forced, origin string, err error) {
	text, origin := o.planText()
	return parseForced(text, origin, reg)
}

func (o *Options) planText() (text, origin string) {
	if text, origin = o.Plan, "Options.Plan"; text == "" {
		text, origin = os.Getenv(PlanVariable), PlanVariable
	}
	switch order := (tasks.Plan{Order: tasks.TreeOrder}).String(); {
	case !o.Deterministic:
		return text, origin
	case text == "":
		return order, "Options.Deterministic"
	default:
		return order + ";" + text, "Options.Deterministic and " + origin
	}
}

func parseForced(text, origin string, reg submodules.Registry) (f tasks.Forced, _ string, err error) {
	if f, err = tasks.ParseForced(text); err != nil {
		return nil, "", fmt.Errorf("%s: %w", origin, err)
	}
	for _, item := range f {
		if err := reg.Check(item.Plan); err != nil {
			return nil, "", fmt.Errorf("%s: %w", origin, err)
		}
	}
	return f, origin, nil
}
