package executor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/tasks"
)

// EnoughDescriptors complains if the process can't open need more files, what says
// for what. It raises the soft limit as far as the hard one lets it.
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

// sharingDescriptors is what a rank opens to share memory with the ranks of its
// node: a socket, a memory file and a doorbell for each at the same time, and its
// own epoll, memory and doorbell.
func sharingDescriptors(node int) int {
	if node == 1 {
		return 2
	}
	return 3 + 3*(node-1)
}

// enoughMemory complains if limits of the process forbid the shared memory of a
// node of that many ranks, each of which maps the memory of all.
func enoughMemory(node int) error {
	const one = segmentBytes
	for _, limit := range []struct {
		which int
		need  uint64
		text  string
	}{
		// Beyond this the kernel doesn't refuse: it sends a signal that kills.
		{unix.RLIMIT_FSIZE, one, "a file of %s in memory; files are limited to %s (ulimit -f)"},
		{unix.RLIMIT_AS, uint64(node) * one, "%s of address space, of which few pages are used; it is limited to %s (ulimit -v)"},
	} {
		var l unix.Rlimit
		if err := unix.Getrlimit(limit.which, &l); err == nil && l.Cur < limit.need {
			return fmt.Errorf("sharing memory with the %d ranks of a node takes "+limit.text, node,
				tasks.FormatBytes(int64(limit.need)), tasks.FormatBytes(int64(l.Cur)))
		}
	}
	return nil
}

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

// heapStep is in what steps the Go heap grows, bytes.
const heapStep = 64 << 20
