//go:build !race

package executor

func announceRead([]byte) {}

func announceWrite([]byte) {}
