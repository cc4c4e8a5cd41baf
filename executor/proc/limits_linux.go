package proc

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/tasks"
)

// EnoughDescriptors complains if the process can't open need more files; what names
// their use. It raises the soft limit as far as the hard one lets it.
func EnoughDescriptors(need int, what string) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		// Without a descriptor left, even looking fails; with /proc hidden, nobody knows.
		entries = nil
	}
	open := len(entries)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return nil // no limit is known
	}
	if uint64(open+need) <= l.Cur {
		return nil
	}
	raised := l
	raised.Cur = l.Max
	if l.Cur < l.Max && unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
		l = raised
	}
	if uint64(open+need) <= l.Cur {
		return nil
	}
	return fmt.Errorf("%s needs %d file descriptors and %d are open; the limit is %d, the hard limit %d (ulimit -n)",
		what, need, open, l.Cur, l.Max)
}

// sharingDescriptors counts the descriptors to share memory with the other ranks of the
// node: a socket, a memory file and a doorbell for each at the same time, and its
// own epoll, memory and doorbell.
func sharingDescriptors(node int) int {
	if node == 1 {
		return 2
	}
	return 3 + 3*(node-1)
}

// segmentFor returns the address space of one rank's shared memory on a node of so many ranks, bytes:
// segmentBytes, or less where limits of the process are lower. Each rank maps the memory of all. It
// complains if the limits, or the memory left, are too low for any.
func segmentFor(node int, left int64, limitOf func(which int) uint64) (size int64, err error) {
	size = segmentBytes
	for _, limit := range []struct {
		which int
		parts int64 // as many segments have to be within the limit
		text  string
	}{
		// Beyond this the kernel doesn't refuse: it sends a deadly signal.
		{unix.RLIMIT_FSIZE, 1, "a file of %s in memory; files are limited to %s (ulimit -f)"},
		// The rest is the program's.
		{unix.RLIMIT_AS, 4 * int64(node), "%s of address space, of which few pages are used; it is limited to %s (ulimit -v)"},
	} {
		has := limitOf(limit.which)
		if has >= uint64(limit.parts)*segmentBytes {
			continue
		}
		size = min(size, int64(has)/limit.parts)
		if least := leastSegment(node); size < least {
			return 0, fmt.Errorf("sharing memory with the %d ranks of a node takes "+limit.text, node,
				tasks.FormatBytes(limit.parts*least), tasks.FormatBytes(int64(has)))
		}
	}
	if least := int64(node) * shm.LeastBytes(node); left > 0 && left < least {
		return 0, fmt.Errorf("sharing memory with the %d ranks of a node takes %s of memory, and more with long messages; the machine, or the limit of the container, leaves %s",
			node, tasks.FormatBytes(least), tasks.FormatBytes(left>>10<<10))
	}
	return size, nil
}

// leastSegment is the least address space of a segment on a node of so many ranks, bytes: with 16 MiB for slots.
func leastSegment(node int) int64 { return shm.Overhead(node) + 16<<20 }

// softLimit returns a limit of this process; none is the largest number.
func softLimit(which int) uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(which, &l); err != nil {
		return math.MaxUint64
	}
	return l.Cur
}

// enoughLeft complains if less than n bytes of memory are left. Beyond the limit of a container the
// kernel doesn't refuse: it kills.
func enoughLeft(n, left int64) error {
	if left > 0 && left < n {
		return fmt.Errorf("%s more of shared memory are needed; the machine, or the limit of the container, leaves %s",
			tasks.FormatBytes(n), tasks.FormatBytes(left>>10<<10))
	}
	return nil
}
