package tasks

import (
	"errors"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/levels"
)

// Request is one collective call, as every rank of the communicator makes it. It is canonical:
// two ranks that mean the same thing have equal requests, apart from InPlace: each rank with a
// receive buffer decides on it for itself.
type Request struct {
	Coll    Collective
	Count   int64    // elements in a rank's buffer, or in its block of one; 0 is allowed
	Type    Datatype // ignored by collectives without data
	Op      Op       // reductions only
	Root    levels.Rank
	InPlace bool   // the input is in the receive buffer; of a Scatter, the root's block stays in the send buffer
	Pitch   int64  // elements from one block to the next in a buffer of blocks; 0: Count
	Counts  Counts // of blocks that differ, if the collective has [Row.Counts]; Count is the largest
	Matrix  Matrix // of blocks that differ for each pair, if it has [Row.Matrix]; Count is the largest
}

// Shared returns the request as all ranks of a call have it: without [Request.InPlace]. Whatever
// ranks must find alike without a message, such as the plan, depends on nothing else.
func (r Request) Shared() Request {
	r.InPlace = false
	return r
}

// Bytes is the size of a rank's buffer, or of its block, the largest if they differ.
func (r Request) Bytes() int64 { return r.Count * int64(r.Type.Size()) }

// Reduces reports whether the request combines data.
func (r Request) Reduces() bool { return r.Coll.Reduces() }

// Rooted reports whether the collective has a root, [Request.Root], with another role than the
// other ranks.
func (r Request) Rooted() bool { return r.Coll.IsRooted() }

// Blocks reports whether a buffer holds a block of each rank, in the order of ranks.
func (r Request) Blocks() bool { return r.Coll.HasBlocks() }

// TakesBlocks reports whether the input is a block for each rank.
func (r Request) TakesBlocks() bool { return r.Coll.row().takesBlocks() }

// GivesBlocks reports whether the result is a block of each rank.
func (r Request) GivesBlocks() bool { return r.Coll.row().givesBlocks() }

// Block is the place of a rank's block in a buffer of blocks, bytes.
func (r Request) Block(rank levels.Rank) (off, n int64) {
	size := int64(r.Type.Size())
	if r.Counts != (Counts{}) {
		return r.Counts.Before(int(rank)) * size, r.Counts.At(int(rank)) * size
	}
	return int64(rank) * max(r.Pitch, r.Count) * size, r.Bytes()
}

// Exchanges reports whether each rank has a block of its own for every rank: [Request.Between]
// gives their places.
func (r Request) Exchanges() bool { return r.Coll.Exchanges() }

// Between is the place of the block from one rank to another in an exchange: in the input of the
// one, and in the result of the other; bytes.
func (r Request) Between(from, to levels.Rank) (given, got, n int64) {
	if !r.Matrix.IsZero() {
		size := int64(r.Type.Size())
		return r.Matrix.Given(int(from), int(to)) * size, r.Matrix.Gotten(int(to), int(from)) * size, r.Matrix.At(int(from), int(to)) * size
	}
	given, n = r.Block(to)
	got, _ = r.Block(from)
	return given, got, n
}

// AllBytes is the size of a buffer of all blocks, for a communicator of the given
// size, the largest if they differ; of a request without blocks, [Request.Bytes].
func (r Request) AllBytes(size int) int64 {
	if !r.Matrix.IsZero() {
		return r.Matrix.Busiest() * int64(r.Type.Size())
	}
	if !r.Blocks() || r.Count == 0 {
		return r.Bytes()
	}
	off, n := r.Block(levels.Rank(size - 1))
	return off + n
}

// Differ reports whether blocks may differ.
func (r Request) Differ() bool { return r.Counts.Len() > 0 || !r.Matrix.IsZero() }

// MeanBytes returns the size of a rank's buffer or, of a request with blocks, of a block: if
// they differ the mean, rounded up.
func (r Request) MeanBytes() int64 {
	if !r.Differ() {
		return r.Bytes()
	}
	size := max(r.Counts.Len(), r.Matrix.Len())
	return (r.AllBytes(size) + int64(size) - 1) / int64(size)
}

// Input is the region of a rank's input. In place counts with a receive buffer only: of a Reduce
// or Gather, at the root.
func (r Request) Input(rank levels.Rank) Region {
	place := r.Coll.row().Placement
	if place == OnlyRecv || place == InRecv && r.InPlace && r.Receives(rank) {
		return Recv
	}
	return Send
}

// Gives reports whether a rank puts something in.
func (r Request) Gives(rank levels.Rank) bool {
	return r.Coll.row().Input.Holders == AllRanks || rank == r.Root
}

// Receives reports whether a rank has a receive buffer.
func (r Request) Receives(rank levels.Rank) bool {
	row := r.Coll.row()
	if row.Placement == InSend && r.InPlace && rank == r.Root {
		return false // the result stays in its send buffer
	}
	return row.Output.Holders == AllRanks || rank == r.Root
}

// Combines returns the number of ranks whose data is in a rank's result, for a communicator of
// the given size. It is 0 for rank 0 of an exscan: it gets nothing.
func (r Request) Combines(rank levels.Rank, size int) int {
	switch r.Coll.row().From {
	case CombinedData:
		return size
	case PrefixThrough:
		return int(rank) + 1
	case PrefixBelow:
		return int(rank)
	}
	return 1
}

// Buffers is the bytes of a rank's send and receive buffers, for a communicator of
// the given size.
func (r Request) Buffers(rank levels.Rank, size int) (send, recv int64) {
	in, out := r.sideBytes(r.Coll.row().Input, rank, size), r.sideBytes(r.Coll.row().Output, rank, size)
	if !r.Matrix.IsZero() {
		in, out = r.Matrix.Gives(int(rank))*int64(r.Type.Size()), r.Matrix.Gets(int(rank))*int64(r.Type.Size())
	}
	if r.Input(rank) == Send {
		send = in
	} else {
		out = max(in, out)
	}
	if r.Receives(rank) {
		recv = out
	}
	return send, recv
}

// sideBytes returns a rank's bytes on one side: of its input, or of its result.
func (r Request) sideBytes(s Side, rank levels.Rank, size int) int64 {
	if s.Holders == TheRoot && rank != r.Root {
		return 0
	}
	switch s.Content {
	case Vector:
		return r.Bytes()
	case OwnBlock:
		_, own := r.Block(rank)
		return own
	case AllBlocks:
		return r.AllBytes(size)
	}
	return 0
}

// Validate checks r for a communicator of the given size and returns all
// complaints at once.
func (r Request) Validate(size int) error {
	var errs []error
	switch {
	case !r.Coll.isRequestable():
		return fmt.Errorf("collective %v can't be requested; known are %v", r.Coll, Requestable())
	case !r.Coll.HasData() && r.Count != 0:
		return fmt.Errorf("count %d: a %v moves no data", r.Count, r.Coll)
	case !r.Coll.HasData():
		return nil
	}
	if !r.Type.Valid() {
		errs = append(errs, fmt.Errorf("datatype %v is not an element type", r.Type))
	}
	if r.Count < 0 || r.Type.Valid() && r.Count > math.MaxInt64/int64(r.Type.Size()) {
		errs = append(errs, fmt.Errorf("count %d is not between 0 and 2^63 bytes", r.Count))
	} else if r.Blocks() && r.Type.Valid() && max(r.Pitch, r.Count) > math.MaxInt64/int64(size)/int64(r.Type.Size()) {
		errs = append(errs, fmt.Errorf("count %d: %d blocks are more than 2^63 bytes", r.Count, size))
	}
	if r.Reduces() && r.Type.Valid() && r.Type.IsMovedOnly() && r.Op.ID() != OpUser {
		errs = append(errs, fmt.Errorf("datatype %v: no built-in operation combines such elements", r.Type))
	}
	if r.Reduces() && !r.Op.Valid() {
		errs = append(errs, r.Op.complaint())
	}
	if r.Rooted() && (r.Root < 0 || int(r.Root) >= size) {
		errs = append(errs, fmt.Errorf("root %d: ranks are 0 to %d", r.Root, size-1))
	}
	if r.Differ() {
		errs = append(errs, r.validateCounts(size), r.validateMatrix(size))
	}
	return errors.Join(errs...)
}

func (r Request) validateCounts(size int) error {
	switch n := r.Counts.Len(); {
	case n == 0:
		return nil
	case !r.Coll.HasCounts():
		return fmt.Errorf("counts %v: only %s have blocks that differ", r.Counts, listNames(CollectivesWith(Collective.HasCounts)))
	case n != size:
		return fmt.Errorf("counts %v: %d blocks for %d ranks", r.Counts, n, size)
	case r.Count != r.Counts.Max():
		return fmt.Errorf("count %d is not the largest of %v", r.Count, r.Counts)
	}
	return nil
}

func (r Request) validateMatrix(size int) error {
	switch n := r.Matrix.Len(); {
	case n == 0:
		return nil
	case !r.Coll.HasMatrix():
		return fmt.Errorf("counts %v: only %s may have blocks that differ for each pair", r.Matrix, listNames(CollectivesWith(Collective.HasMatrix)))
	case n != size:
		return fmt.Errorf("counts %v: %d ranks, and there are %d", r.Matrix, n, size)
	case r.Count != r.Matrix.Max():
		return fmt.Errorf("count %d is not the largest of %v, which is %d", r.Count, r.Matrix, r.Matrix.Max())
	case r.Pitch != 0:
		return fmt.Errorf("pitch %d: blocks that differ lie side by side", r.Pitch)
	}
	return nil
}

// listNames returns names as a sentence has them: gather, scatter and allgather.
func listNames(all []Collective) string {
	text := fmt.Sprint(all[0])
	if len(all) == 1 {
		return text
	}
	for _, c := range all[1 : len(all)-1] {
		text += fmt.Sprintf(", %v", c)
	}
	return text + fmt.Sprintf(" and %v", all[len(all)-1])
}

// String is the request as errors print it: allreduce 1024 f32 sum.
func (r Request) String() string {
	if !r.Coll.HasData() {
		return r.Coll.String()
	}
	text := fmt.Sprintf("%v %d %v", r.Coll, r.Count, r.Type)
	if r.Counts.Len() > 0 {
		text = fmt.Sprintf("%v %v %v", r.Coll, r.Counts, r.Type)
	}
	if !r.Matrix.IsZero() {
		text = fmt.Sprintf("%v %v %v", r.Coll, r.Matrix, r.Type)
	}
	if r.Reduces() {
		text += fmt.Sprintf(" %v", r.Op)
	}
	if r.Rooted() {
		text += fmt.Sprintf(" root %d", r.Root)
	}
	return text
}
