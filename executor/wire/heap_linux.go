package wire

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// enoughHeap complains if the process can't have n bytes more of the Go heap.
func enoughHeap(n int64) error {
	var m unix.Sysinfo_t
	if err := unix.Sysinfo(&m); err == nil {
		have := (uint64(m.Totalram) + uint64(m.Totalswap)) * uint64(m.Unit)
		if uint64(n) > have {
			return fmt.Errorf("%d bytes are more than the machine's memory and swap, which are %d", n, have)
		}
	}
	if n < heapStep {
		return nil
	}
	// The kernel may allow less: it knows the limits of the process and how it counts.
	b, err := unix.Mmap(-1, 0, int(n+heapStep), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("the machine, or the process's limit of memory (ulimit -v), has no room for %d bytes more: %w", n, err)
	}
	_ = unix.Munmap(b) // it can't fail: it was mapped just now
	return nil
}

// heapStep is the step by which the Go heap grows, bytes.
const heapStep = 64 << 20
