package proc

import (
	"math"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A limit that the job exceeds is named, with what needs more.
func TestLimits(t *testing.T) {
	for node, want := range map[int]int{1: 2, 2: 6, 3: 9, 100: 300} {
		if got := sharingDescriptors(node); got != want {
			t.Errorf("one of %d ranks opens %d descriptors, want %d", node, got, want)
		}
	}
	if err := EnoughDescriptors(10, "rank 3"); err != nil {
		t.Error(err)
	}
	err := EnoughDescriptors(1<<30, "rank 3")
	if err == nil || !strings.HasPrefix(err.Error(), "rank 3 needs 1073741824 file descriptors and ") {
		t.Errorf("%v", err)
	}
}

// A limit makes segments smaller, and one that is too low for any is named.
func TestSegmentFor(t *testing.T) {
	const none = math.MaxUint64
	for _, test := range []struct {
		file, space uint64
		size        int64
		want        string
	}{
		{none, none, segmentBytes, ""},
		{1 << 30, none, 1 << 30, ""},
		{none, 8 << 30, 512 << 20, ""},
		{1 << 20, none, 0, "sharing memory with the 4 ranks of a node takes a file of 18708KiB in memory; files are limited to 1MiB (ulimit -f)"},
		{none, 256 << 20, 0, "sharing memory with the 4 ranks of a node takes 299328KiB of address space, of which few pages are used; it is limited to 256MiB (ulimit -v)"},
	} {
		size, err := segmentFor(4, 0, func(which int) uint64 {
			if which == unix.RLIMIT_AS {
				return test.space
			}
			return test.file
		})
		if size != test.size || (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("files of %d bytes, %d of address space: %d, %v\nwant %d, %s", test.file, test.space, size, err, test.size, test.want)
		}
	}
}

// Too little memory is said, by Join and when more is taken; the kernel would kill the process.
func TestEnoughMemoryIsLeft(t *testing.T) {
	want := "sharing memory with the 4 ranks of a node takes 144KiB of memory, and more with long messages; the machine, or the limit of the container, leaves 97KiB"
	if _, err := segmentFor(4, 100_000, softLimit); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	want = "1MiB more of shared memory are needed; the machine, or the limit of the container, leaves 1023KiB"
	if err := enoughLeft(1<<20, 1<<20-1); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for _, left := range []int64{0, 1 << 20} { // 0: nobody knows
		if _, err := segmentFor(4, left, softLimit); err != nil || enoughLeft(1<<20, left) != nil {
			t.Errorf("%d bytes left: %v, %v", left, err, enoughLeft(1<<20, left))
		}
	}
}
