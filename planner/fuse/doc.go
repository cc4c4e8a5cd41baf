// Package fuse sums many tensors in few collectives, while others are still computed: the gradients
// of a training step.
//
//	grads, err := fuse.New[float32](comm, sizes, nil) // elements of each tensor; averages over ranks
//	for range steps {
//		for i := len(sizes) - 1; i >= 0; i-- {
//			backward(i, grads.View(i))  // writes tensor i
//			err = grads.Ready(ctx, i)   // starts complete buckets
//		}
//		err = grads.Wait(ctx) // all views hold the averages
//		update(grads.View)
//	}
//
// Tensors lie one after the other in an arena, in the order of becoming ready. Buckets are
// ranges of it, and each is one Allreduce. A bucket starts when all of its tensors are ready and the
// buckets before it have started. So all ranks start them in the same order, even if their goroutines
// end in another. If several are on their way, the first goes first. A tensor larger
// than a bucket runs over several; a smaller one lies in one.
//
// The first bucket is small, for an early begin of communication, and so is the last, because nothing
// is left to hide it behind. The others are so large that at most a tenth of their time is
// latency. This needs the times of calls, by a decision table or a known machine. Otherwise they
// have [DefaultBucket] bytes.
//
// PyTorch's DistributedDataParallel does the same with gradient_as_bucket_view (Li et al.,
// "PyTorch Distributed", VLDB 2020). A step allocates nothing.
//
// Ranks that run out of batches before others call [Buckets.Drain], with [Options.Uneven]: they take part in the
// others' steps with zeros, and averages are of the ranks that still have batches.
//
// Calls of Ready go on in the background: a goroutine hinders them if it computes without a pause and
// is alone on its processor. With GOMAXPROCS=1 communication goes on when the Go scheduler
// interrupts the computation, some 10 ms later, so Explain and the log warn of it.
//
// Buckets need their communicator for themselves: another collective on it between the first Ready
// and the end of Wait must come at the same place on all ranks. Take a Dup for others.
package fuse
