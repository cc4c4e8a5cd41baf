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
// Package choose asks for the plan of a request: what is forced, a decision table
// ([table.Table]), prices on a known machine, the built-in rule of package rule, in this
// order. Explain says which one chose. Package tune measures on the machine and writes such
// a table.
package planner
