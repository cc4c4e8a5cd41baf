package wire

import (
	"errors"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
)

// BytesAt returns n bytes that begin off bytes behind p. The caller has p from the owner:
// this one keeps the memory alive and in place while the run lasts.
func BytesAt(p unsafe.Pointer, off, n int64) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(p, off)), n)
}

// Start returns the address of b.
func Start(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// CacheLine is the alignment of scratch and slots, bytes.
const CacheLine = 64

// Heap returns n bytes of the Go heap on a cache line, and a free that does nothing. If
// they can't be had it is an error: the runtime would end the process.
func Heap(n int64) (b []byte, free func(), err error) {
	if err := enoughHeap(n); err != nil {
		return nil, nil, err
	}
	return Aligned(n), func() {}, nil
}

// Aligned allocates n bytes on a cache line.
func Aligned(n int64) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n+CacheLine-1)
	skip := -uintptr(unsafe.Pointer(&b[0])) & (CacheLine - 1)
	return b[skip : int64(skip)+n : int64(skip)+n]
}

// Apart allocates n elements on cache lines of their own: words written by goroutine
// ranks with every message would often lie side by side.
func Apart[T any](n int) []T {
	around := CacheLine/int(unsafe.Sizeof(*new(T))) + 1
	return make([]T, n+2*around)[around : around+n : around+n]
}

// OneProcess is the [Memory] of goroutine ranks of one process: they read each
// other's memory as their own. It goes with a link for addresses. That a rank
// doesn't leave a run while it is read is seen to by the engine.
type OneProcess struct{}

var _ Memory = OneProcess{}

// Shared returns memory of the Go heap: all goroutines can read it.
func (OneProcess) Shared(n int64) ([]byte, func(), error) { return Heap(n) }

// Lend is Shared.
func (OneProcess) Lend(n int64) ([]byte, func(), error) { return Heap(n) }

// Readable returns true.
func (OneProcess) Readable(unsafe.Pointer) bool { return true }

// Leave does nothing.
func (OneProcess) Leave(CommID) {}

// Holds returns true.
func (OneProcess) Holds(levels.Rank, unsafe.Pointer, int64) bool { return true }

// Read returns an error: no rank is out of reach.
func (OneProcess) Read(levels.Rank, uint64, []byte) error { return errors.ErrUnsupported }

// Intact returns true.
func (OneProcess) Intact(levels.Rank, CommID, uint64) bool { return true }
