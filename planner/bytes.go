package planner

import (
	"errors"
	"unsafe"

	"github.com/tierflow/tierflow/planner/internal/inside"
)

func asBytes[T any](s []T) []byte { return inside.Bytes(s) }

var errOverlap = errors.New("send and receive buffers overlap in part; they must be the same or apart")

func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}
