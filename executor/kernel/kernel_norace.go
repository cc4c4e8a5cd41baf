//go:build !race

package kernel

// detects: the race detector is on, and can't see what assembly touches.
const detects = false

// announced tells the race detector what assembly touches; without it, nothing.
func announced(f Func) Func { return f }
