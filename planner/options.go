package planner

import (
	"io/fs"
	"log/slog"
	"time"

	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/rules"
)

// Options are the options of a communicator. The zero value and nil are ready
// to use. In this order they are about
//
//   - choosing plans: Plan to Links
//   - errors and limits: Uniform to CloseTimeout
//   - looking, and what ranks do outside of the job: Managed to Hooks
//   - the way of bytes: TLS to Link
//
// Most have a variable of the environment as their twin: tierflow info --env lists these.
type Options struct {
	// Plan forces plans, in the grammar of [choose.ParseForced]. Its words are constraints: what
	// is chosen is the cheapest plan that has them, of those that the others know. Empty: the
	// environment's TIERFLOW_PLAN.
	Plan string
	// Deterministic makes reductions give the same bits for all layouts of the ranks
	// and all plans: it puts order=tree before the plans of Plan or the environment.
	// Plans forced by these still apply. If one can't keep the order, creating the
	// collective fails, and the error lists those that can.
	Deterministic bool
	// Rules names a file of rules, see package rules. They decide whatever Plan leaves open.
	// A call without a rule, or with a plan that no rank can compile, is decided as if there
	// were none, see package choose. In a job of processes rank 0's file counts, for all ranks.
	// Empty: the environment's TIERFLOW_RULES; if it is empty too, no rules.
	Rules string
	// Decide is asked after the rules and before a table: it returns a plan in the grammar
	// of [tasks.ParsePlan], or false. tierflow rules compile writes such a function. All ranks
	// must have the same one, and it must give equal plans for equal parameters. If the plan
	// can't be read, creating the collective is an error. nil: nobody is asked.
	Decide func(p *rules.Params) (plan string, known bool)
	// Table names a file with a decision table, as tierflow tune writes it. The table decides
	// whatever Plan and Rules leave open. If it has no answer prices do, or the built-in rule.
	// In a job of processes rank 0's file counts, for all ranks. Empty: the environment's
	// TIERFLOW_TABLE. If it is empty too, processes use the tables that tierflow tune has kept in
	// the user's cache folder for jobs on hosts of these kinds, of this or another size, unless TIERFLOW_TABLE is off or Machine is not auto.
	Table string
	// MeasuredTable refuses a table of simulated times: joining, or making goroutine
	// ranks, fails with an error naming the table and the simulated machine.
	// Of processes rank 0's counts, since it has the table.
	MeasuredTable bool
	// Machine describes the machine. If neither Plan nor a table decides, plans
	// are then chosen by their prices on it, and the built-in rule's plan is one of several.
	//
	//	auto            processes on several nodes use the machine kept by an earlier job of the
	//	                same nodes in the user's cache folder, if some messages take
	//	                as long as it says. Else, if they are Managed, they measure it when they
	//	                join, and rank 0 keeps it; a failure to write is no error. Elsewhere the same as off
	//	a file's name   a machine's file, as tierflow bench p2p writes it
	//	measure         the ranks measure it when the communicator is made: links in some
	//	                hundredths of a second, and a few MiB between few pairs of ranks. All
	//	                use rank 0's result. If the machine can't be measured, it is as if
	//	                Machine were off, and Explain says why
	//	measure:FILE    the same, and rank 0 keeps the machine in a file. A later job of the
	//	                same ranks reads it there and measures nothing
	//	off             nothing is known, and the built-in rule decides
	//
	// In a job of processes rank 0's counts, for all ranks. Empty: the environment's
	// TIERFLOW_MACHINE; if it is empty too, auto. With off the built-in rule decides: the same
	// program has the same plans on all machines, and no job waits for a measurement.
	Machine string
	// Files has files that Rules, Table and Machine name, such as an [embed.FS]. Names that it doesn't have, and those that the
	// environment gives, are of the file system, as all are if it is nil.
	Files fs.FS
	// Effort says how hard to look for a plan.
	//
	//	estimate  it is decided without running anything
	//	measure   making a collective, or the first one-shot call of its kind, runs the most
	//	          promising plans in turns, for 0.2 s at most and on memory of its own. All ranks
	//	          take the fastest. Making one is then a call of all ranks of the communicator, in
	//	          the order of its collectives. Managed processes keep their findings, as tierflow
	//	          tune without a file does, and later jobs of as many ranks on such hosts try nothing anew. Plans
	//	          by Plan, Rules or Decide hold, and reductions by a function of
	//	          [tasks.UserOp] are decided without a trial
	//
	// In a job of processes rank 0's counts, for all ranks. Empty: the environment's
	// TIERFLOW_EFFORT; if it is empty too, estimate.
	Effort string
	// Links names the links between nodes and their rate, such as 10gbit. Decision tables
	// are measured and asked under that name: a table's times on other links are from
	// elsewhere. With TLS the name ends in +tls, or is tls. In a job of processes rank 0's name
	// counts. Empty: the environment's TIERFLOW_LINKS; if it is empty too, they are unknown, but
	// between goroutine ranks without Link they are [table.SharedMemory].
	Links string

	// Uniform lets each collective end alike on all ranks that go on after a death: well on all of
	// them, or with an error on all of them. After an error a rank's input is as before the call,
	// even if send and recv are one slice. So the call can be made again on the result of
	// [Comm.Shrink], and no [Comm.Agree] is needed. Each call ends with a barrier then, and an
	// in-place call copies its input before it. A failed call returns once the ranks that go on
	// have agreed. Their programs need not call anything for it. After the end of its context a
	// call returns 2 s later at most, and then this rank is none of them. Sends and receives, and
	// exchanges of package raw, are not uniform. In a job of processes rank 0's setting counts, for all
	// ranks. It holds for communicators made from this one too.
	Uniform bool
	// CheckNaN looks at this rank's inputs of Allreduce, Reduce, ReduceScatter, Scan and Exscan before each call. A NaN
	// breaks the communicator, and all ranks get an error that names this rank and the element. It costs one pass over
	// the input. So does TIERFLOW_CHECK_NAN=1 in the environment.
	CheckNaN bool
	// CallTimeout bounds each call of this rank, collectives as sends and receives: it fails as
	// if its context had the timeout, and the error names the missing ranks, see [LateError]. It
	// begins when a call has to wait. 0: the environment's TIERFLOW_CALL_TIMEOUT, such as 30s; if
	// it is empty too, or for a negative one, calls wait as long as their context lets them.
	CallTimeout time.Duration
	// CloseTimeout bounds how long Close waits, in processes, for living ranks that have not
	// closed yet. Then Close leaves, and its error names them. Give more if ranks have much to
	// do after their last collective. 0: 30 s.
	CloseTimeout time.Duration

	// Managed lets the library act outside of the job, as in ranks of tierflow run. On SIGQUIT each rank's wait is printed
	// to standard error, see [executor.World.DumpOnQuit]. Processes can be asked by tierflow ps and the like, at a socket
	// in [env.Door]'s folder. Those of a node that seem to share a processor are moved apart; none
	// stays bound. With Machine auto they measure the machine, and rank 0 keeps it and the findings of Effort in the user's cache
	// folder. Without it nothing of this is done. In a job of processes rank 0's setting counts, for all ranks.
	// TIERFLOW_MANAGED=1 in the environment does the same; tierflow run sets it for its ranks, unless it is there already.
	Managed bool
	// Log gets failures and stall reports. nil: none, but stalls are reported to [slog.Default], standard error unless the
	// program says otherwise: nobody else could say why a job, or a test, stands still. Files that can't be
	// written are said there, too.
	Log *slog.Logger
	// StallAfter is how long a collective waits before it reports to Log.
	// 0: 10 s; negative: never.
	StallAfter time.Duration
	// Trace is a folder for the steps of a sample of each rank's calls, for tierflow
	// trace --merge: DIR, or DIR:every=N to keep one call of N, 1 to 1,048,576 and the same on all
	// ranks. All keep the same calls, one of 16 unless told. The files are written when the
	// communicator of all ranks is closed; failing that Close returns an error, and Log or else
	// [slog.Default] gets a warning. Empty: the environment's TIERFLOW_TRACE; if it is empty too,
	// nothing is kept.
	Trace string
	// Profile is a file for rank 0's calls, for tierflow tune --profile: collectives, sizes, plans,
	// how often, and how long it was in them. It is written when the communicator of
	// all ranks is closed, whole or not at all, and what goes wrong is said as with Trace. Calls of
	// other ranks without rank 0 are not in it. summary, in place of a name: rank 0 prints
	// the time by collective and size to standard error. Empty: the environment's TIERFLOW_PROFILE; if it is empty too, nothing is counted.
	Profile string
	// Recorder is a file for each rank's last events: tierflow trace
	// --recorder reads it even after a kill -9; %r stands for the rank. Empty: the
	// environment's TIERFLOW_RECORDER; if it is empty too, no file. A further job
	// of the process while the first is open has .w2 at the end of its files, and so
	// on, see [executor.World.Record].
	Recorder string
	// DumpOnQuit prints each rank's wait to standard error on SIGQUIT, see [executor.World.DumpOnQuit], and
	// lets the process go on, unless it gets a second one within a second. So does TIERFLOW_DUMP=1 in the environment.
	// In a Managed process it is printed without that, and Go then ends the process as usual. A program with a handler of
	// its own gets each SIGQUIT twice then: TIERFLOW_DUMP=0 leaves them to it alone.
	DumpOnQuit bool
	// DumpDir is a folder for the states of ranks, if these are processes. A rank writes
	// there when the job stands still and it has found out why, and when a communicator
	// fails; tierflow diagnose reads it afterwards, and only this user can. Empty: the environment's
	// TIERFLOW_DUMP_DIR; if it is empty too, nothing is kept.
	DumpDir string
	// Hooks watch every step, see package trace. Zero: none.
	Hooks trace.Hooks

	// TLS seals connections between nodes, with TLS 1.3: "job" by the job's secret, in Config's
	// or the launcher's hands. "cert=FILE,key=FILE,ca=FILE" does it by certificates on both
	// sides; ",id=GLOB" behind it limits their names, see [join.Config]. "off" leaves plain TCP.
	// All ranks have the same: joining fails otherwise, and names the ranks. Empty: the
	// environment's TIERFLOW_TLS; if it is empty too, off.
	TLS string
	// Congestion is the TCP congestion control of this rank's connections to other
	// nodes, present and allowed in the kernel, such as reno; creating the communicator
	// fails otherwise. Empty: the environment's TIERFLOW_CONGESTION; if it is empty
	// too, the system's choice.
	Congestion string
	// Link makes messages between goroutine ranks take their time, see [local.Network] for what it
	// leaves out. nil: they don't.
	Link local.Shaper

	seams inside.Seams // see package raw
}
