//go:build race

package executor

import (
	"runtime"
	"unsafe"
)

// The race detector doesn't see raw system calls: these tell it what they read
// and write.

func announceRead(b []byte) {
	if len(b) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&b[0]), len(b))
	}
}

func announceWrite(b []byte) {
	if len(b) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&b[0]), len(b))
	}
}
