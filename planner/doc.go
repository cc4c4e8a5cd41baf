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
// Forced plans come first, then rules, a table, prices on a known machine, and the built-in rule last: [Collective.Explain]
// names the one that chose.
//
// On this package stand elastic, for jobs whose ranks change; feedback, which tunes a running program; fuse and shard, for
// training; exact, whose sums don't depend on the layout; object, for values of any type; and metrics.
package planner
