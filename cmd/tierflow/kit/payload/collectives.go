package payload

import (
	"fmt"
	"unsafe"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// maker prepares a collective on buffers of one element type.
type maker func(c *planner.Comm, r tasks.Request, send, recv []byte) (*planner.Collective, error)

// Prepare prepares the request's collective on buffers whose element type is known
// only when the program runs.
func Prepare(c *planner.Comm, r tasks.Request, send, recv []byte) (*planner.Collective, error) {
	if r.Coll == tasks.Barrier {
		return planner.Barrier(c)
	}
	make, err := makerFor(r.Type)
	if err != nil {
		return nil, err
	}
	return make(c, r, send, recv)
}

// CheckType returns an error if there are no buffers of a type.
func CheckType(t tasks.Datatype) error {
	_, err := makerFor(t)
	return err
}

// makerFor returns the maker of a type. There is none for a Loc of a half type: that
// isn't a Go type.
func makerFor(t tasks.Datatype) (maker, error) {
	makers, of := scalarMakers, t
	if value, ok := t.Loc(); ok {
		makers, of = locMakers, value
	}
	if m, ok := makers[of]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("there are no buffers of %v: no Go type is made of it", t)
}

func makerOf[T any](c *planner.Comm, r tasks.Request, send, recv []byte) (*planner.Collective, error) {
	var counts []int
	for i := range r.Counts.Len() {
		counts = append(counts, int(r.Counts.At(i)))
	}
	switch r.Coll {
	case tasks.Bcast:
		return planner.Bcast(c, view[T](recv), int(r.Root))
	case tasks.Reduce:
		return planner.Reduce(c, view[T](send), view[T](recv), r.Op, int(r.Root))
	case tasks.Allgather:
		if counts != nil {
			return planner.Allgatherv(c, view[T](send), view[T](recv), counts)
		}
		return planner.Allgather(c, view[T](send), view[T](recv))
	case tasks.Gather:
		if counts != nil {
			return planner.Gatherv(c, view[T](send), view[T](recv), counts, int(r.Root))
		}
		return planner.Gather(c, view[T](send), view[T](recv), int(r.Root))
	case tasks.Scatter:
		if counts != nil {
			return planner.Scatterv(c, view[T](send), view[T](recv), counts, int(r.Root))
		}
		return planner.Scatter(c, view[T](send), view[T](recv), int(r.Root))
	case tasks.ReduceScatter:
		if counts != nil {
			return planner.ReduceScatterv(c, view[T](send), view[T](recv), counts, r.Op)
		}
		return planner.ReduceScatter(c, view[T](send), view[T](recv), r.Op)
	case tasks.Alltoall:
		if !r.Matrix.IsZero() {
			return planner.AlltoallMatrix(c, view[T](send), view[T](recv), r.Matrix)
		}
		return planner.Alltoall(c, view[T](send), view[T](recv))
	case tasks.Allreduce:
		return planner.Allreduce(c, view[T](send), view[T](recv), r.Op)
	case tasks.Scan:
		return planner.Scan(c, view[T](send), view[T](recv), r.Op)
	case tasks.Exscan:
		return planner.Exscan(c, view[T](send), view[T](recv), r.Op)
	}
	return nil, fmt.Errorf("%v: no buffers are known for it", r.Coll)
}

func view[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

var scalarMakers = map[tasks.Datatype]maker{
	tasks.Int8: makerOf[int8], tasks.Int16: makerOf[int16], tasks.Int32: makerOf[int32], tasks.Int64: makerOf[int64],
	tasks.Uint8: makerOf[uint8], tasks.Uint16: makerOf[uint16], tasks.Uint32: makerOf[uint32], tasks.Uint64: makerOf[uint64],
	tasks.Float16: makerOf[half.Float16], tasks.BFloat16: makerOf[half.BFloat16],
	tasks.Float32: makerOf[float32], tasks.Float64: makerOf[float64],
	tasks.Complex64: makerOf[complex64], tasks.Complex128: makerOf[complex128],
}

var locMakers = map[tasks.Datatype]maker{
	tasks.Int8: makerOf[tasks.Loc[int8]], tasks.Int16: makerOf[tasks.Loc[int16]],
	tasks.Int32: makerOf[tasks.Loc[int32]], tasks.Int64: makerOf[tasks.Loc[int64]],
	tasks.Uint8: makerOf[tasks.Loc[uint8]], tasks.Uint16: makerOf[tasks.Loc[uint16]],
	tasks.Uint32: makerOf[tasks.Loc[uint32]], tasks.Uint64: makerOf[tasks.Loc[uint64]],
	tasks.Float32: makerOf[tasks.Loc[float32]], tasks.Float64: makerOf[tasks.Loc[float64]],
}

// MaxBytes bounds what all ranks' buffers take together: a mistyped size must be an
// error, not the end of the process.
const MaxBytes = 64 << 30
