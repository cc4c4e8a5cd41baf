package planner

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// untype returns a canonical request: [fill] makes it, and blocks of nothing are no
// blocks that differ.
func untype[T any](c *Comm, r tasks.Request, root int, send, recv []T) (_ tasks.Request, from, to []byte, err error) {
	r, from, to, err = fill(c, r, root, send, recv)
	if r.Count == 0 {
		r.Counts, r.Matrix = tasks.Counts{}, tasks.Matrix{}
	}
	return r, from, to, err
}

// fill fills in the root and what the buffers say: element type, count, and whether
// this rank works in place.
func fill[T any](c *Comm, r tasks.Request, root int, send, recv []T) (_ tasks.Request, from, to []byte, err error) {
	if err = c.made(); err != nil {
		return r, nil, nil, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if r.Root, err = c.rank("root", root); err != nil {
		return r, nil, nil, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if r.Type, err = elementOf[T](r.Coll); err != nil {
		return r, nil, nil, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if most := math.MaxInt64 / int64(r.Type.Size()); r.Counts.Sum() > most {
		return r, nil, nil, fmt.Errorf("%v: counts %v: %d elements of %d bytes; allowed are %d", r.Coll, r.Counts, r.Counts.Sum(), r.Type.Size(), most)
	}
	if n := r.Matrix.Len(); n > 0 && n != c.Size() {
		return r, nil, nil, fmt.Errorf("%v: counts of %d ranks; there are %d", r.Coll, n, c.Size())
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
	if r, err = sized(c, r, len(send), len(recv)); err != nil {
		return r, nil, nil, err
	}
	in, out := from, to // the parts that are the same in place
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
		return r, nil, nil, fmt.Errorf("%v: %w", r.Coll, errOverlap)
	}
	return r, from, to, nil
}

// elementOf returns the type of a collective's elements: a reduction takes only those that
// operations combine.
func elementOf[T any](c tasks.Collective) (tasks.Datatype, error) {
	if c.Reduces() {
		return tasks.DatatypeOf[T]()
	}
	return tasks.ElementOf[T]()
}

// fillCount fills in the count of a rank that has one buffer, of so many elements, and checks
// it where the counts say how many those must be.
func fillCount(r tasks.Request, me levels.Rank, elements int) (tasks.Request, error) {
	if r.Counts.Len() == 0 {
		r.Count = int64(elements)
		return r, nil
	}
	if want := r.Counts.At(int(me)); int64(elements) != want {
		return r, fmt.Errorf("%v: %d elements; with counts %v it must be %d", r.Coll, elements, r.Counts, want)
	}
	return r, nil
}

// sized fills in the count and checks the buffers' lengths.
func sized(c *Comm, r tasks.Request, send, recv int) (tasks.Request, error) {
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
	if !r.Blocks() {
		return r, fmt.Errorf("%v: %d elements to send, %d to receive; they must be equal", r.Coll, send, recv)
	}
	switch {
	case !r.Matrix.IsZero():
		return r, fmt.Errorf("%v: %d elements to send, %d to receive; its counts add up to %d and %d", r.Coll, send, recv, wantSend, wantRecv)
	case r.Exchanges():
		return r, fmt.Errorf("%v: %d elements to send, %d to receive; they must be equal, blocks of equal size for each of %d ranks", r.Coll, send, recv, c.Size())
	}
	blocks := fmt.Sprintf("a block for each of %d ranks", c.Size())
	switch {
	case r.Counts.Len() > 0:
		return r, fmt.Errorf("%v: %d elements to send, %d to receive; with counts %v it must be %d and %d", r.Coll, send, recv, r.Counts, wantSend, wantRecv)
	case r.TakesBlocks():
		return r, fmt.Errorf("%v: %d elements to send, %d to receive; it must be %d to send, %s", r.Coll, send, recv, wantSend, blocks)
	}
	return r, fmt.Errorf("%v: %d elements to send, %d to receive; it must be %d, %s", r.Coll, send, recv, wantRecv, blocks)
}

func asBytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

var errOverlap = errors.New("send and receive buffers overlap in part; they must be the same or apart")

func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}
