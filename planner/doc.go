// Package planner is what programs import: communicators, collectives on slices,
// and the plans behind them.
//
// A collective is compiled once and run any number of times:
//
//	err := planner.Run(ctx, "4x2", nil, func(ctx context.Context, comm *planner.Comm) error {
//		sum, err := planner.Allreduce(comm, grads, grads, tasks.Sum) // in place
//		if err != nil {
//			return err
//		}
//		return sum.Run(ctx) // allocation-free from the second call on
//	})
//
// All ranks of a communicator must call the same collectives in the same order;
// ranks that don't get [ErrMismatch]. After a failure a communicator is broken:
// every call on it, on every rank, returns an error that says who failed.
//
// Wrong arguments are an error of the call. Nobody else hears of it: the other ranks
// wait for this one until it calls again, or closes. Wrong are a nil context, too,
// and a value that no function of this package has made. Methods without an error to
// return panic then.
//
// Package choose asks for the plan of a request, and says who is asked in which order: what is
// forced first, the built-in rule last. Explain says who chose. Package tune measures on the
// machine and writes a decision table ([table.Table]), which is asked too.
//
// # A walk: making an Allreduce
//
// What a call passes from the slices to a run that can start, each stay once. The walk goes
// on in package executor: how a run goes to the wire and comes back.
//
//	planner/collective.go      Allreduce             says what is asked
//	planner/collective.go      typed                 makes a request of it, and bytes of the slices
//	planner/collective.go      Comm.collective       decides, compiles and binds
//	planner/settle.go          Comm.settled          looks the decision up, or has it made
//	planner/decide.go          policy.choose         asks the question
//	planner/choose/choose.go   Chain.Choose          asks one chooser after the other
//	planner/collective.go      Comm.binding          says what ranks must agree on
//	submodules/compiled.go     CompileRequest        cuts it into passes, and compiles these
//	tasks/expand.go            ExpandOn              makes tasks of request, levels and plan
//	submodules/compile.go      Compiler.Compile      lowers this rank's tasks to steps
//	submodules/nbc/nbc.go      NBC.Lower             emits the steps of one task; other submodules likewise
//	dag/frozen.go              Graph.Freeze          makes arrays of the graph
//	planner/collective.go      Comm.bind             finds what combines elements
//	executor/bind.go           Comm.Bind             makes a run of programs and memory
package planner
