//go:build !race

package wire

// AnnounceRead tells the race detector of the bytes for a raw system call to read.
func AnnounceRead([]byte) {}

// AnnounceWrite tells the race detector of the bytes for a raw system call to write.
func AnnounceWrite([]byte) {}
