package planner

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/tierflow/tierflow/tasks"
)

// Alloc returns n zero elements in memory readable in place by the other ranks of the
// node. Collectives on them copy once; on ordinary slices they may need the
// kernel or a copy in between. Between goroutine ranks, and for a rank alone
// on its node, it is ordinary memory.
//
// The slice belongs to the caller until [Free]; it stays valid after the
// communicator is closed. It is not the garbage collector's: without Free the
// memory lasts as long as the process. Other ranks never write to it.
//
// It is an error to ask for more than the machine's memory and swap, or, in a process
// that shares its node, for more than 16 GiB in all, or than what limits of the process leave (ulimit -f; a
// quarter of ulimit -v for all ranks of the node).
func Alloc[T any](c *Comm, n int) ([]T, error) {
	if err := c.checkMade(); err != nil {
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
		none := make([]T, 1)[:0:0] // Free knows it by its own address
		c.world.allocs.Store(unsafe.Pointer(unsafe.SliceData(none)), func() {})
		return none, nil
	}
	b, free, err := c.comm.Endpoint().Alloc(int64(n * size))
	if err != nil {
		return nil, fmt.Errorf("alloc %d elements of %d bytes: %w", n, size, err)
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	c.world.allocs.Store(at, free)
	return unsafe.Slice((*T)(at), n), nil
}

// Free gives back a slice of [Alloc] on c, or on a communicator of the same world,
// closed or not. It must not be used afterwards, nor by a collective
// bound to it. It reports whether s was such a slice and had not been freed.
func Free[T any](c *Comm, s []T) bool {
	c.mustBeMade()
	free, ok := c.world.allocs.LoadAndDelete(unsafe.Pointer(unsafe.SliceData(s)))
	if ok {
		free.(func())()
	}
	return ok
}
