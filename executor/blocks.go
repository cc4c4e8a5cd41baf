package executor

import (
	"math/bits"
)

// blocks keeps payloads until their recvs are ready. A block's size is the next power of two:
// together they take at most twice the peers' eager budgets.
type blocks struct {
	all  [][]byte
	free [64][]int32 // by class
}

const smallestBlock = 6 // as a power of two: about the charge for a message

// blockClass returns the power of two of the block for a payload of size bytes.
func blockClass(size int) int { return max(smallestBlock, bits.Len(uint(size-1))) }

// keep copies a payload and returns its block, -1 for an empty one.
func (b *blocks) keep(payload []byte) int32 {
	if len(payload) == 0 {
		return -1
	}
	at := blockClass(len(payload))
	free := &b.free[at]
	if len(*free) == 0 {
		*free = append(*free, int32(len(b.all)))
		b.all = append(b.all, make([]byte, 1<<at))
	}
	n := (*free)[len(*free)-1]
	*free = (*free)[:len(*free)-1]
	b.all[n] = append(b.all[n][:0], payload...)
	return n
}

// get returns a kept payload, nil for an empty one.
func (b *blocks) get(n int32) []byte {
	if n < 0 {
		return nil
	}
	return b.all[n]
}

// drop lets go of a block; -1 is none.
func (b *blocks) drop(n int32) {
	if n >= 0 {
		at := blockClass(cap(b.all[n]))
		b.free[at] = append(b.free[at], n)
	}
}
