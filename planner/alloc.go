package planner

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/tierflow/tierflow/tasks"
)

// Alloc returns n zero elements in memory that the other ranks of the node can read
// in place. Collectives on them copy once; on ordinary slices they may need the
// kernel or a copy in between. Between goroutine ranks, and for a rank that is alone
// on its node, it is ordinary memory.
//
// The slice belongs to the caller until [Free]; it stays valid after the
// communicator is closed. It is not the garbage collector's: without Free the
// memory lasts as long as the process. Other ranks never write to it.
//
// What can't be had is an error: more than the machine's memory and swap, or, for a
// process that shares its node, more in all than 16 GiB.
func Alloc[T any](c *Comm, n int) ([]T, error) {
	if err := c.made(); err != nil {
		return nil, fmt.Errorf("alloc: %w", err)
	}
	if _, err := tasks.ElementOf[T](); err != nil {
		return nil, fmt.Errorf("alloc: %w", err)
	}
	size := int(unsafe.Sizeof(*new(T)))
	if n < 0 || n > math.MaxInt/size {
		return nil, fmt.Errorf("alloc: %d elements of %d bytes; allowed are 0 to %d", n, size, math.MaxInt/size)
	}
	if n == 0 {
		none := make([]T, 1)[:0:0] // it has an address of its own, by which Free knows it
		c.world.lent.Store(unsafe.Pointer(unsafe.SliceData(none)), func() {})
		return none, nil
	}
	b, free, err := c.comm.Endpoint().Alloc(int64(n * size))
	if err != nil {
		return nil, fmt.Errorf("alloc %d elements of %d bytes: %w", n, size, err)
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	c.world.lent.Store(at, free)
	return unsafe.Slice((*T)(at), n), nil
}

// Free gives back a slice that [Alloc] returned on c, or on a communicator of the
// same world, which may be closed. It must not be used afterwards, nor by a collective
// bound to it. It reports whether the slice was one that had not been freed.
func Free[T any](c *Comm, s []T) bool {
	c.mustBeMade()
	free, ok := c.world.lent.LoadAndDelete(unsafe.Pointer(unsafe.SliceData(s)))
	if ok {
		free.(func())()
	}
	return ok
}
