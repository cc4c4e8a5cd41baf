package planner

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/tierflow/tierflow/tasks"
)

// AllreduceValue combines one value of each rank and returns the result on all of them,
// such as the sum of a loss. It is [Allreduce] of one element: from the second call with
// the same type and operation on it allocates nothing, if a value has at most 16 bytes. On an error it
// returns zero.
func AllreduceValue[T any](ctx context.Context, c *Comm, v T, op tasks.Op) (T, error) {
	var zero T
	if err := c.checkCall(ctx); err != nil {
		return zero, fmt.Errorf("%v: %w", tasks.Allreduce, err)
	}
	if _, err := tasks.OperandOf[T](op); err != nil {
		return zero, fmt.Errorf("%v: %w", tasks.Allreduce, err)
	}
	if unsafe.Sizeof(v) > unsafe.Sizeof(scalar{}) {
		one := []T{v}
		if err := Allreduce(ctx, c, one, one, op); err != nil {
			return zero, err
		}
		return one[0], nil
	}
	room := c.scalar.Swap(nil)
	if room == nil {
		room = &scalar{}
	}
	one := unsafe.Slice((*T)(unsafe.Pointer(room)), 1)
	one[0] = v
	if err := Allreduce(ctx, c, one, one, op); err != nil {
		return zero, err // the room may still be in use
	}
	v = one[0]
	c.scalar.Store(room)
	return v, nil
}
