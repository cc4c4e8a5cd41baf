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
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/rules/foreign"
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

// CallTimeoutVariable is the environment variable that bounds calls, see
// [Options.CallTimeout].
const CallTimeoutVariable = "TIERFLOW_CALL_TIMEOUT"

// Options are what a communicator may be told. The zero value and nil are ready
// to use.
type Options struct {
	// Plan forces plans, in the grammar of [ParseForced]; what it leaves
	// open is decided as always. Empty: the environment's TIERFLOW_PLAN.
	Plan string
	// Deterministic makes reductions give the same bits for all layouts of the ranks
	// and all plans: it puts order=tree before the plans of Plan or the environment.
	// Plans forced by these still apply. If one can't keep the order, creating the
	// collective fails, and the error lists those that can.
	Deterministic bool
	// Rules names a file of rules, see package rules. They decide what Plan leaves open.
	// The rest is decided as if there were none, see package choose. So
	// it is where no rank could compile the rules' plan. In a job of
	// processes rank 0's counts, for all ranks. Empty: the environment's TIERFLOW_RULES; if
	// that is empty too, no rules.
	Rules string
	// RulesData is the text of such a file, in place of Rules.
	RulesData []byte
	// Decide is asked where rules leave it open, before a table: it returns a plan in the grammar
	// of [tasks.ParsePlan], or false. tierflow rules compile writes such a function. All ranks
	// must have the same one, and it must give equal plans for equal parameters. A plan that
	// can't be read is the error of creating the collective. nil: nobody is asked.
	Decide func(p *rules.Params) (plan string, known bool)
	// Table names a file with a decision table, as tierflow tune writes it. The table
	// decides all that Plan and Rules leave open; where it has no answer
	// prices do, or the built-in rule. In a job of processes rank 0's counts, for all ranks. Empty: the
	// environment's TIERFLOW_TABLE. If that is empty too, processes use the table that
	// tierflow tune has kept for the same ranks in the user's cache folder, unless
	// TIERFLOW_TABLE is off or Machine is not auto.
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
	//	auto            processes on several nodes use the machine that an earlier job of the
	//	                same nodes has kept in the user's cache folder, if some messages take
	//	                as long as it says. Else they measure it when they join, and rank 0
	//	                keeps it; that it can't is no error. Elsewhere the same as off
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
	// TIERFLOW_MACHINE; if that is empty too, auto. With off the built-in rule decides, so that
	// the same program has the same plans on all machines, and no job waits for a measurement.
	Machine string
	// Effort says how hard to look for a plan.
	//
	//	estimate  it is decided without running anything
	//	measure   making a collective, or the first one-shot call of its kind, runs the most
	//	          promising plans in turns, for 0.2 s at most and on memory of its own. All ranks
	//	          take the fastest. Making one is then a call of all ranks of the communicator, in
	//	          the order of its collectives. Processes keep what they have found, as tierflow
	//	          tune without a file does, and later jobs of the same ranks try nothing anew. What
	//	          Plan, Rules or Decide say holds, and reductions by a function of
	//	          [tasks.UserOp] are decided without a trial
	//
	// In a job of processes rank 0's counts, for all ranks. Empty: the environment's
	// TIERFLOW_EFFORT; if that is empty too, estimate.
	Effort string
	// MachineData is the content of such a file, in place of Machine.
	MachineData []byte
	// Log gets failures and stall reports. nil: none; but ranks that are processes
	// then report stalls to [slog.Default], which is standard error unless the
	// program says otherwise: nobody else could say why a job stands still.
	Log *slog.Logger
	// Uniform lets each collective end alike on all ranks that go on after a death: well on all of them, or
	// with an error on all of them. After an error a rank's input is as before the call, even if send and recv
	// are one slice. So the call can be made again on what [Comm.Shrink] returns, and no [Comm.Agree] is needed.
	// Each call ends with a barrier then, and what an in-place call would overwrite is copied before it. A call
	// that fails returns once those who go on have agreed. Their programs need not call anything for that. A call whose
	// context ends returns 2 s later at most, and then this rank is none of them. Sends and receives, and
	// [Comm.ExchangeNow], are not uniform. In a job of processes rank 0's counts, for all ranks. It holds for
	// communicators made from this one too.
	Uniform bool
	// StallAfter is how long a collective waits before Log hears what for.
	// 0: 10 s; negative: never.
	StallAfter time.Duration
	// CallTimeout bounds each call of this rank, collectives as sends and receives: it fails as
	// if its context had that timeout, and the error says who has not come, see [LateError]. It
	// begins when a call has to wait. 0: the environment's TIERFLOW_CALL_TIMEOUT, such as 30s; if
	// that is empty too, or for a negative one, calls wait as long as their context lets them.
	CallTimeout time.Duration
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
	// DumpOnQuit lets the process go on after SIGQUIT, unless it gets a second one within a
	// second; so does TIERFLOW_DUMP=1 in the environment. Always SIGQUIT prints what each
	// rank waits for to standard error, see [executor.World.DumpOnQuit]; else Go then ends
	// the process as usual.
	DumpOnQuit bool
	// NoDump leaves SIGQUIT alone, for a program that handles it itself: else that gets each
	// twice. So does TIERFLOW_DUMP=0 in the environment.
	NoDump bool
	// DumpDir is a folder for the states of ranks, where these are processes. A rank writes
	// there when the job stands still and it has found out why, and when a communicator
	// fails; tierflow diagnose reads it afterwards. Empty: the environment's TIERFLOW_DUMP_DIR; if that is empty
	// too, nothing is kept.
	DumpDir string
	// Trace is a folder in which each rank keeps the steps of a sample of its calls, for tierflow
	// trace --merge: DIR, or DIR:every=N to keep one call of N, 1 to 1,048,576 and the same on all
	// ranks. All keep the same calls, one of 16 unless told. The files are written when the
	// communicator of all ranks is closed. Empty: the environment's TIERFLOW_TRACE; if that is
	// empty too, nothing is kept.
	Trace string
	// Profile is a file for what rank 0 calls, for tierflow tune --profile: collectives and sizes, by
	// which plans, how often, and how long it was in them. It is written when the communicator of
	// all ranks is closed, whole or not at all. Calls that other ranks make without rank 0 are not
	// in it. Empty: the environment's TIERFLOW_PROFILE; if that is empty too, nothing is counted.
	Profile string
	// Congestion is the TCP congestion control of this rank's connections to other
	// nodes, one that the kernel has and allows, such as reno; creating the communicator
	// fails otherwise. Empty: the environment's TIERFLOW_CONGESTION; if that is empty
	// too, the system's choice.
	Congestion string
	// TLS seals what passes between nodes, with TLS 1.3: "job" by the job's secret, which is
	// in Config's or the launcher's hands. "cert=FILE,key=FILE,ca=FILE" does it by
	// certificates on both sides; ",id=GLOB" behind it says whose, see [join.Config]. "off" leaves it plain TCP. All ranks have the
	// same: joining fails otherwise, and names the ranks. Empty: the environment's
	// TIERFLOW_TLS; if that is empty too, off.
	TLS string
	// Hooks watch every step, see package trace. Zero: none.
	Hooks trace.Hooks
	// Progress, if not nil, is called again and again by a goroutine that waits for a
	// collective, see [executor.Config].
	Progress func()
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
	// elsewhere. With TLS the name ends in +tls, or is tls. In a job of processes that of rank 0 counts. Empty: the environment's
	// TIERFLOW_LINKS; if that is empty too, they are unknown, but those of goroutine ranks
	// without Link are [table.SharedMemory].
	Links string
}

func (o *Options) config() (executor.Config, error) {
	limit, err := o.callTimeout()
	return executor.Config{
		StallAfter: o.StallAfter, CloseTimeout: o.CloseTimeout, CallTimeout: limit, Log: o.Log, Hooks: o.Hooks, Progress: o.Progress,
	}, err
}

// callTimeout is the limit for calls that the options or the environment give; 0: none.
func (o *Options) callTimeout() (time.Duration, error) {
	text := os.Getenv(CallTimeoutVariable)
	if o.CallTimeout != 0 || text == "" {
		return max(0, o.CallTimeout), nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("%s=%q; allowed are durations such as 30s or 5m, and 0 for none", CallTimeoutVariable, text)
	}
	return limit, nil
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

// logger is where warnings go that nobody has asked for.
func (o *Options) logger() *slog.Logger {
	if o == nil || o.Log == nil {
		return slog.Default()
	}
	return o.Log
}

// ParseForced reads plans in the grammar of [tasks.ParseForced]. A collective's plan may also have
// a word of another library, as bcast:ompi=6/65536: an algorithm's number or name, a segment
// size and a fan-out, or as bcast:mpich=binomial. tierflow info --foreign lists them. Unknown
// submodules and algorithms are errors; origin begins each.
func ParseForced(text, origin string, reg submodules.Registry) (tasks.Forced, error) {
	f, _, err := parseForced(text, origin, reg)
	return f, err
}

func parseForced(text, origin string, reg submodules.Registry) (f tasks.Forced, _ string, err error) {
	if text, err = foreign.Expand(text); err == nil {
		f, err = tasks.ParseForced(text)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", origin, err)
	}
	for _, item := range f {
		if err := reg.Check(item.Plan); err != nil {
			return nil, "", fmt.Errorf("%s: %w", origin, err)
		}
	}
	return f, origin, nil
}
