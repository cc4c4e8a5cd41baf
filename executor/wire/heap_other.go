//go:build !linux

package wire

import (
	"fmt"
	"math"
)

// maxHeap bounds what is asked of the Go heap at once, where the machine's memory isn't
// known.
const maxHeap = min(64<<30, math.MaxInt-CacheLine)

// enoughHeap complains if n bytes are more than that.
func enoughHeap(n int64) error {
	if n > maxHeap {
		return fmt.Errorf("%d bytes in one piece; at most %d", n, int64(maxHeap))
	}
	return nil
}
