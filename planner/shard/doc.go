// Package shard keeps the parameters of a model in parts: each rank owns one part of each unit,
// such as a layer, and has whole units only while it computes with them.
//
//	params, err := shard.New[float32](comm, sizes, &shard.Options{Buffers: 2}) // elements of each unit
//	copy(params.Own(u), initial)                  // this rank's part, for the optimizer
//	err = params.Gather(ctx, 0)                   // starts
//	for u := range sizes {
//		weights, err := params.Whole(ctx, u)  // waits
//		err = params.Gather(ctx, u+1)         // on its way while u is computed
//		forward(weights)
//		params.Free(u)                        // its buffer goes to another unit
//	}
//	err = params.Reduce(ctx, u, grad)             // starts: the average over ranks, in parts
//	mine, err := params.Grad(ctx, u)              // waits: that of Own(u)
//
// These are the steps of ZeRO (Rajbhandari et al., SC 2020) and of PyTorch's FSDP. Of n elements,
// P ranks and b buffers a rank keeps n/P elements and b of the largest units, or n where all units
// have a buffer; and n/P of reductions. A gather and a reduction send (P-1)/P of a unit each.
//
// Gathers go before started reductions: computing waits for them.
//
// Gather and Reduce start collectives: all ranks call them in the same order. One goroutine calls
// the methods. Started calls go on in the background.
package shard
