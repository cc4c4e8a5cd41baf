// Package planner is the package programs import: communicators, collectives on slices,
// and the plans behind them. The guide in cmd/tierflow/guide, which tierflow docs shows, begins
// with a first program.
//
// A collective is one call:
//
//	err := planner.Run(ctx, "4x2", nil, func(ctx context.Context, comm *planner.Comm) error {
//		return planner.Allreduce(ctx, comm, grads, grads, tasks.Sum) // in place
//	})
//
// Its program is compiled at the first call and kept for the next one of the same size. [PrepareAllreduce] and
// the others compile one for fixed buffers, which also starts without waiting:
//
//	sum, err := planner.PrepareAllreduce(ctx, comm, grads, grads, tasks.Sum)
//	err = sum.Run(ctx) // allocation-free from the second run on
//
// What may block takes a context. When it ends first, the communicator breaks on all ranks.
//
// All ranks of a communicator must call the same collectives in the same order;
// else they get [ErrMismatch]. After a failure a communicator is broken:
// every call on it, on every rank, returns an error naming the failed rank.
//
// A communicator is for one goroutine at a time: calls of several have no order that is the same on all
// ranks. A call that would overlap another one returns [ErrBusy], and the first goes on. Give each
// goroutine a communicator of its own, by [Comm.Dup].
//
// Wrong arguments are an error of the call. Nobody else hears of it: the other ranks
// wait for this one until it calls again, or closes. A nil context is wrong, too,
// and so is a value not made by this package. Methods without an error to return
// panic then.
//
// Package choose asks several choosers for the plan of a request, in order: forced plans first, the
// built-in rule last. Explain names the one that chose. Package tune measures on the machine and
// writes a decision table ([table.Table]), which the chooser [choose.Table] looks up.
//
// # A walk: making an Allreduce
//
// A call passes these functions on its way from the slices to a run ready to start. Each is listed
// once. The walk goes on in package executor: how a run goes to the wire and comes back.
//
//	planner/collective.go      PrepareAllreduce      says what is asked
//	planner/collective.go      prepare               makes a request of it, and bytes of the slices
//	planner/collective.go      Comm.collective       decides, compiles and binds
//	planner/decide.go          Comm.decideOrTry      looks the decision up, or has it made
//	planner/policy.go          policy.choose         asks the question
//	planner/choose/choose.go   Chain.Choose          asks one chooser after the other
//	planner/bind.go            base.binding          has it compiled, and describes it for errors
//	submodules/compiled.go     CompileRequest        cuts it into passes, and makes the digest that ranks compare
//	tasks/expand.go            ExpandOn              makes tasks of request, levels and plan
//	submodules/compile.go      Compiler.Compile      lowers this rank's tasks to steps
//	submodules/internal/nbc/nbc.go      NBC.Lower             emits the steps of one task; other submodules likewise
//	dag/frozen.go              Graph.Freeze          makes arrays of the graph
//	planner/bind.go            base.bindRun          finds what combines elements
//	executor/bind.go           Comm.Bind             makes a run of programs and memory
package planner
