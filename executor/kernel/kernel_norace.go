//go:build !race

package kernel

// announced tells the race detector what assembly touches; without it, nothing.
func announced(f Func) Func { return f }
