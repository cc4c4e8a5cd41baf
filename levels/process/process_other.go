//go:build !linux

package process

import "os"

// Space is empty: processes can be seen on Linux only.
func Space() string { return "" }

func stat(int) (born uint64, stopped, known bool) { return 0, false, false }

func open(int) *os.File { return nil }

func hasEnded(*os.File) bool { return false }
