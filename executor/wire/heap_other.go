//go:build !linux

package wire

import (
	"fmt"
	"math"
)

// maxHeap bounds one allocation of the Go heap on systems that don't tell the machine's
// memory, bytes.
const maxHeap = min(64<<30, math.MaxInt-CacheLine)

// enoughHeap complains if n bytes are more than maxHeap.
func enoughHeap(n int64) error {
	if n > maxHeap {
		return fmt.Errorf("%d bytes in one piece; at most %d", n, int64(maxHeap))
	}
	return nil
}
