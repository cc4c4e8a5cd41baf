//go:build race

package wire

import (
	"runtime"
	"unsafe"
)

// The race detector doesn't see raw system calls: these tell it what they read
// and write.

// AnnounceRead tells the race detector what a raw system call is about to read.
func AnnounceRead(b []byte) {
	if len(b) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&b[0]), len(b))
	}
}

// AnnounceWrite tells the race detector what a raw system call is about to write.
func AnnounceWrite(b []byte) {
	if len(b) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&b[0]), len(b))
	}
}
