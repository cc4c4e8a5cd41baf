package kernel

import "github.com/tierflow/tierflow/tasks"

// blockFunc is assembly that combines n bytes, a positive multiple of blockSize.
type blockFunc func(dst, a, b *byte, n int)

const (
	// blockSize is one AVX2 register.
	blockSize = 32
	// pieceSize bounds how long assembly runs, to some 10 µs: the garbage
	// collector can't stop a goroutine inside.
	pieceSize = 256 << 10
	// opDivide is the row of the assembly table for [Finish].
	opDivide = tasks.OpUser
)

// inBlocks makes a Func of assembly for whole blocks and a Go kernel for the rest.
func inBlocks(whole blockFunc, rest Func) Func {
	return func(dst, a, b []byte) {
		a, b = a[:len(dst):len(a)], b[:len(dst):len(b)] // assembly checks nothing: too short an operand panics here
		for len(dst) >= blockSize {
			n := min(len(dst), pieceSize) &^ (blockSize - 1)
			whole(&dst[0], &a[0], &b[0], n)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		if len(dst) > 0 {
			rest(dst, a, b)
		}
	}
}
