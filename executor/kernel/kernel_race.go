//go:build race

package kernel

import (
	"runtime"
	"unsafe"
)

// detects: the race detector is on, and can't see the accesses of assembly.
const detects = true

// announce tells the race detector of the accesses of assembly.
func announce(f Func) Func {
	return func(dst, a, b []byte) {
		if len(dst) > 0 {
			runtime.RaceReadRange(unsafe.Pointer(&a[0]), len(dst))
			runtime.RaceReadRange(unsafe.Pointer(&b[0]), len(dst))
			runtime.RaceWriteRange(unsafe.Pointer(&dst[0]), len(dst))
		}
		f(dst, a, b)
	}
}
