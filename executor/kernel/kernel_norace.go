//go:build !race

package kernel

// detects: the race detector is on, and can't see the accesses of assembly.
const detects = false

// announce tells the race detector of the accesses of assembly; without it, nothing.
func announce(f Func) Func { return f }
