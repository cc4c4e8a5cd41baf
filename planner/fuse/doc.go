// Package fuse sums many tensors in few collectives, while others are still computed: the gradients
// of a training step.
//
//	grads, err := fuse.New[float32](comm, sizes, nil) // elements of each tensor; averages over ranks
//	for range steps {
//		for i := len(sizes) - 1; i >= 0; i-- {
//			backward(i, grads.View(i))  // writes tensor i
//			err = grads.Ready(ctx, i)   // starts what is complete
//		}
//		err = grads.Wait(ctx) // all views hold the averages
//		update(grads.View)
//	}
//
// Tensors lie one after the other in an arena, in the order in which they become ready. Buckets are
// ranges of it, and each is one Allreduce. A bucket starts when all of its tensors are ready and the
// buckets before it have started, so all ranks start them in the same order, whatever the order in
// which a rank's goroutines end. Where several are on their way, the first goes first. A tensor that
// is larger than a bucket runs over several; a smaller one lies in one.
//
// The first bucket is small, so that communication begins early, and the last is, because nothing
// is left to hide it behind. Those between are so large that at most a tenth of their time is
// latency. For that a decision table or a known machine must say what calls take. Otherwise they
// have [DefaultBucket] bytes.
//
// This is what PyTorch's DistributedDataParallel does with gradient_as_bucket_view (Li et al.,
// "PyTorch Distributed", VLDB 2020). A step allocates nothing.
//
// Calls of Ready go on in the background: a goroutine that computes without a pause and is alone
// on its processor hinders that. With GOMAXPROCS=1 communication goes on when the Go scheduler
// interrupts the computation, some 10 ms later, so Explain and the log warn of it.
//
// Buckets need their communicator for themselves: another collective on it between the first Ready
// and the end of Wait must come at the same place on all ranks. Take a Dup for others.
package fuse
