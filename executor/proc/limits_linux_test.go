package proc

import (
	"errors"
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
	if err := enoughMemory(4, 0); err != nil {
		t.Skip(err) // the test is limited itself
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = 1 << 30
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &before)
	want := "sharing memory with the 4 ranks of a node takes a file of 16GiB in memory; files are limited to 1GiB (ulimit -f)"
	if err := enoughMemory(4, 0); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// Too little memory is said, by Join and when more is taken; the kernel would kill the process.
func TestEnoughMemoryIsLeft(t *testing.T) {
	want := "sharing memory with the 4 ranks of a node takes 144KiB of memory, and more with long messages; the machine, or the limit of the container, leaves 97KiB"
	if err := enoughMemory(4, 100_000); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	want = "1MiB more of shared memory are needed; the machine, or the limit of the container, leaves 1023KiB"
	if err := enoughLeft(1<<20, 1<<20-1); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	for _, left := range []int64{0, 1 << 20} { // 0: nobody knows
		if err := errors.Join(enoughLeft(1<<20, left), enoughMemory(4, left)); err != nil {
			t.Errorf("%d bytes left: %v", left, err)
		}
	}
}
