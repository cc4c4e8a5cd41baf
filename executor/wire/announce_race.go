//go:build race

package wire

import (
	"runtime"
	"unsafe"
)

// The race detector doesn't see raw system calls: these functions tell it of their reads
// and writes.

// AnnounceRead tells the race detector of the bytes for a raw system call to read.
func AnnounceRead(b []byte) {
	if len(b) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&b[0]), len(b))
	}
}

// AnnounceWrite tells the race detector of the bytes for a raw system call to write.
func AnnounceWrite(b []byte) {
	if len(b) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&b[0]), len(b))
	}
}
