//go:build !race

package wire

// AnnounceRead tells the race detector what a raw system call is about to read.
func AnnounceRead([]byte) {}

// AnnounceWrite tells the race detector what a raw system call is about to write.
func AnnounceWrite([]byte) {}
