package planner

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// requestOf returns the request made by [fill], and the buffers as bytes. A request without elements is
// canonical: its list of block counts is nil.
func requestOf[T any](c *Comm, r tasks.Request, root int, send, recv []T) (_ tasks.Request, from, to []byte, err error) {
	r, from, to, err = fill(c, r, root, send, recv)
	if err != nil {
		return r, nil, nil, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if r.Count == 0 {
		r.Counts, r.Matrix = tasks.Counts{}, tasks.Matrix{}
	}
	return r, from, to, nil
}

// fill fills in the root, and from the buffers element type, count, and whether this rank
// works in place.
func fill[T any](c *Comm, r tasks.Request, root int, send, recv []T) (_ tasks.Request, from, to []byte, err error) {
	if err = c.checkMade(); err != nil {
		return r, nil, nil, err
	}
	if r.Root, err = c.rank("root", root); err != nil {
		return r, nil, nil, err
	}
	if r.Type, err = elementOf[T](r.Coll, r.Op); err != nil {
		return r, nil, nil, err
	}
	if most := math.MaxInt64 / int64(r.Type.Size()); r.Counts.Sum() > most {
		return r, nil, nil, fmt.Errorf("counts %v: %d elements of %d bytes; allowed are %d", r.Counts, r.Counts.Sum(), r.Type.Size(), most)
	}
	if n := r.Matrix.Len(); n > 0 && n != c.Size() {
		return r, nil, nil, fmt.Errorf("counts of %d ranks; there are %d", n, c.Size())
	}
	from, to = asBytes(send), asBytes(recv)
	switch me := levels.Rank(c.Rank()); {
	case r.Coll.Row().Placement == tasks.OnlyRecv, !r.Gives(me):
		r, err = fillCount(r, me, len(recv))
		return r, nil, to, err
	case !r.Receives(me):
		r, err = fillCount(r, me, len(send))
		return r, from, nil, err
	}
	if r, err = checkLengths(c, r, len(send), len(recv)); err != nil {
		return r, nil, nil, err
	}
	in, out := from, to // in place these parts are the same
	off, n := r.Block(levels.Rank(c.Rank()))
	switch {
	case r.Exchanges():
	case r.GivesBlocks():
		out = to[off:][:n]
	case r.Coll.Row().Placement == tasks.InSend:
		in = from[off:][:n]
	}
	r.InPlace = unsafe.SliceData(in) == unsafe.SliceData(out)
	if !r.Matrix.IsZero() {
		r.InPlace = r.InPlace && len(in) > 0 && len(out) > 0 // without elements nothing is in place
	}
	switch {
	case r.InPlace && r.Coll.Row().Placement == tasks.InSend:
		return r, from, nil, nil
	case r.InPlace && r.TakesBlocks():
		return r, nil, from, nil
	case r.InPlace:
		return r, nil, to, nil
	case overlap(from, to):
		return r, nil, nil, errOverlap
	}
	return r, from, to, nil
}

// elementOf returns the type of a collective's elements. A reduction takes only types that its operation
// combines.
func elementOf[T any](c tasks.Collective, op tasks.Op) (tasks.Datatype, error) {
	if c.Reduces() {
		return tasks.OperandOf[T](op)
	}
	return tasks.ElementOf[T]()
}

// fillCount fills in the count of a rank with one buffer, of so many elements. With counts by rank
// it checks that number.
func fillCount(r tasks.Request, me levels.Rank, elements int) (tasks.Request, error) {
	if r.Counts.Len() == 0 {
		r.Count = int64(elements)
		return r, nil
	}
	if want := r.Counts.At(int(me)); int64(elements) != want {
		return r, fmt.Errorf("%d elements; with counts %v it must be %d", elements, r.Counts, want)
	}
	return r, nil
}

// checkLengths fills in the count and checks the buffers' lengths.
func checkLengths(c *Comm, r tasks.Request, send, recv int) (tasks.Request, error) {
	if !r.Differ() {
		switch r.Count = int64(send); {
		case r.Exchanges():
			r.Count /= int64(c.Size())
		case r.TakesBlocks():
			r.Count = int64(recv)
		}
	}
	wantSend, wantRecv := r.Buffers(c.comm.Rank(), c.Size()) // bytes
	wantSend, wantRecv = wantSend/int64(r.Type.Size()), wantRecv/int64(r.Type.Size())
	if int64(send) == wantSend && int64(recv) == wantRecv {
		return r, nil
	}
	var must string
	switch {
	case !r.Blocks():
		must = "they must be equal"
	case !r.Matrix.IsZero():
		must = fmt.Sprintf("its counts add up to %d and %d", wantSend, wantRecv)
	case r.Exchanges():
		must = fmt.Sprintf("they must be equal, blocks of equal size for each of %d ranks", c.Size())
	case r.Counts.Len() > 0:
		must = fmt.Sprintf("with counts %v it must be %d and %d", r.Counts, wantSend, wantRecv)
	case r.TakesBlocks():
		must = fmt.Sprintf("it must be %d to send, a block for each of %d ranks", wantSend, c.Size())
	default:
		must = fmt.Sprintf("it must be %d, a block for each of %d ranks", wantRecv, c.Size())
	}
	return r, fmt.Errorf("%d elements to send, %d to receive; %s", send, recv, must)
}
