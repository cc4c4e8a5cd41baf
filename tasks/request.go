package tasks

import (
	"errors"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/levels"
)

// Request is one collective call, as every rank of the communicator makes it.
// It is canonical: two ranks that mean the same thing have equal requests,
// apart from InPlace, which each rank with a receive buffer decides for itself.
type Request struct {
	Coll    Collective
	Count   int64    // elements in a rank's buffer, or in its block of one; 0 is allowed
	Type    Datatype // ignored by Barrier
	Op      Op       // reductions only
	Root    levels.Rank
	InPlace bool  // the input is in the receive buffer
	Pitch   int64 // elements from one block to the next in a buffer of blocks; 0: Count
}

// Bytes is the size of a rank's buffer, or of its block.
func (r Request) Bytes() int64 { return r.Count * int64(r.Type.Size()) }

// Reduces reports whether the request combines data.
func (r Request) Reduces() bool { return r.Coll == Allreduce || r.Coll == Reduce }

// Rooted reports whether one rank, [Request.Root], has another part than the others.
func (r Request) Rooted() bool { return r.Coll == Bcast || r.Coll == Reduce || r.Coll == Gather }

// Blocks reports whether receive buffers hold a block of each rank, in the order
// of ranks.
func (r Request) Blocks() bool { return r.Coll == Allgather || r.Coll == Gather }

// Stride is the bytes from one block to the next.
func (r Request) Stride() int64 { return max(r.Pitch, r.Count) * int64(r.Type.Size()) }

// Input is the region in which a rank has what it puts in. In place counts where
// there is a receive buffer: of a Reduce or Gather, at the root.
func (r Request) Input(rank levels.Rank) Region {
	switch {
	case r.Coll == Bcast, r.Coll == Barrier, r.InPlace && r.Receives(rank):
		return Recv
	}
	return Send
}

// Receives reports whether a rank has a receive buffer.
func (r Request) Receives(rank levels.Rank) bool {
	return r.Coll != Reduce && r.Coll != Gather || rank == r.Root
}

// Buffers is the bytes of a rank's send and receive buffers, for a communicator of
// the given size.
func (r Request) Buffers(rank levels.Rank, size int) (send, recv int64) {
	if r.Coll == Barrier {
		return 0, 0
	}
	if r.Input(rank) == Send {
		send = r.Bytes()
	}
	if r.Receives(rank) {
		recv = r.Bytes()
		if r.Blocks() && recv > 0 {
			recv += int64(size-1) * r.Stride()
		}
	}
	return send, recv
}

// Validate checks r for a communicator of the given size and returns all
// complaints at once.
func (r Request) Validate(size int) error {
	var errs []error
	switch r.Coll {
	case Barrier:
		if r.Count != 0 {
			errs = append(errs, fmt.Errorf("count %d: a barrier moves no data", r.Count))
		}
		return errors.Join(errs...)
	case Bcast, Reduce, Allreduce, Allgather, Gather:
	default:
		return fmt.Errorf("collective %v can't be requested; known are %v", r.Coll, Requestable())
	}
	if !r.Type.Valid() {
		errs = append(errs, fmt.Errorf("datatype %v is not an element type", r.Type))
	}
	if r.Count < 0 || r.Type.Valid() && r.Count > math.MaxInt64/int64(r.Type.Size()) {
		errs = append(errs, fmt.Errorf("count %d is not between 0 and 2^63 bytes", r.Count))
	} else if r.Blocks() && r.Type.Valid() && r.Stride() > math.MaxInt64/int64(size) {
		errs = append(errs, fmt.Errorf("count %d: %d blocks are more than 2^63 bytes", r.Count, size))
	}
	if r.Reduces() && !r.Op.Valid() {
		errs = append(errs, fmt.Errorf("operation %v is not a reduction", r.Op))
	}
	if r.Rooted() && (r.Root < 0 || int(r.Root) >= size) {
		errs = append(errs, fmt.Errorf("root %d is not one of the ranks 0…%d", r.Root, size-1))
	}
	return errors.Join(errs...)
}

// String is the request as errors print it: allreduce 1024 f32 sum.
func (r Request) String() string {
	switch {
	case r.Coll == Barrier:
		return "barrier"
	case r.Coll == Allgather:
		return fmt.Sprintf("%v %d %v", r.Coll, r.Count, r.Type)
	case r.Coll == Allreduce:
		return fmt.Sprintf("%v %d %v %v", r.Coll, r.Count, r.Type, r.Op)
	case r.Coll == Reduce:
		return fmt.Sprintf("%v %d %v %v root %d", r.Coll, r.Count, r.Type, r.Op, r.Root)
	}
	return fmt.Sprintf("%v %d %v root %d", r.Coll, r.Count, r.Type, r.Root)
}
