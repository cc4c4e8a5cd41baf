package tasks

import (
	"fmt"
	"unsafe"
)

// Combine applies an operation of [UserOp] to two slices as a reduction does it, a from the
// lower ranks: dst[i] = a[i] ⊕ b[i]. It is for those who test their own operations. The slices
// have equal lengths; dst may be a or b, and must not overlap with them otherwise. An operation
// that can't combine elements of T is an error, as is a built-in one: these need no test.
func Combine[T any](op Op, dst, a, b []T) error {
	if len(a) != len(dst) || len(b) != len(dst) {
		return fmt.Errorf("combine: %d and %d elements into %d; they must be equal", len(a), len(b), len(dst))
	}
	t, err := OperandOf[T](op)
	if err != nil {
		return fmt.Errorf("combine: %w", err)
	}
	f, err := op.Kernel(t)
	if err != nil {
		return fmt.Errorf("combine: %w", err)
	}
	f(bytesOf(dst), bytesOf(a), bytesOf(b))
	return nil
}

// bytesOf views elements as their bytes.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
