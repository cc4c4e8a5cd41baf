package proc

import (
	"bytes"
	"errors"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
)

// unixPair is the two ends of a unix connection.
func unixPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	a, b, err := wiretest.UnixConns()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// descriptorsOpen counts the descriptors of this process.
func descriptorsOpen(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// sharer is what a rank shares: its memory and its doorbell.
type sharer struct {
	memory, bell int
	mem          []byte
}

func newSharer(t *testing.T) (s sharer) {
	t.Helper()
	var err error
	if s.memory, s.mem, err = newMemory(segmentBytes); err != nil {
		t.Skip(err) // a limit of the machine
	}
	if s.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Munmap(s.mem)
		unix.Close(s.memory)
		unix.Close(s.bell)
	})
	return s
}

// Two ranks see each other's memory, and ring each other's doorbell.
func TestSwap(t *testing.T) {
	a, b := unixPair(t)
	mine, theirs := newSharer(t), newSharer(t)
	copy(theirs.mem[segmentBytes-5:], "their")
	done := make(chan error, 1)
	go func() { // waited for below
		mem, bell, err := swap(b, theirs.memory, theirs.bell, 1<<20)
		if err == nil {
			copy(mem, "hello")
			ring(bell)
			unix.Close(bell)
			err = unix.Munmap(mem)
		}
		done <- err
	}()
	mem, bell, err := swap(a, mine.memory, mine.bell, 1<<20)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	unix.Close(bell)
	if string(mine.mem[:5]) != "hello" || string(mem[segmentBytes-5:]) != "their" {
		t.Errorf("this rank's memory begins with %q, the peer's ends with %q", mine.mem[:5], mem[segmentBytes-5:])
	}
	var count [8]byte
	if n, err := unix.Read(mine.bell, count[:]); n != 8 || err != nil {
		t.Errorf("the doorbell has not rung: %v", err)
	}
	if err := unix.Munmap(mem); err != nil {
		t.Error(err)
	}
}

// What a peer sends in place of its memory is refused, and no descriptor of it stays open.
func TestSwapRefuses(t *testing.T) {
	mine := newSharer(t)
	file := func(size int64, seals int) int {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err == nil {
			err = unix.Ftruncate(fd, size)
		}
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		}
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	small, loose := file(4096, unix.F_SEAL_SHRINK), file(segmentBytes, unix.F_SEAL_GROW)
	defer unix.Close(small)
	defer unix.Close(loose)
	for name, c := range map[string]struct {
		fds  []int
		want string
	}{
		"nothing":        {nil, "no descriptors came"},
		"one descriptor": {[]int{mine.memory}, "1 descriptors came, want 2"},
		"no memory":      {[]int{mine.bell, mine.bell}, "shared memory of 0 bytes"},
		"small memory":   {[]int{small, mine.bell}, "shared memory of 4096 bytes"},
		"may shrink":     {[]int{loose, mine.bell}, "that can't shrink"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := unixPair(t)
			before := descriptorsOpen(t)
			if _, _, err := b.WriteMsgUnix([]byte{1}, unix.UnixRights(c.fds...), nil); err != nil {
				t.Fatal(err)
			}
			_, _, err := swap(a, mine.memory, mine.bell, 1<<20)
			if !errors.Is(err, executor.ErrProtocol) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
			if after := descriptorsOpen(t); after != before {
				t.Errorf("%d descriptors were open, now %d", before, after)
			}
		})
	}
	a, b := unixPair(t)
	b.Close()
	if _, _, err := swap(a, mine.memory, mine.bell, 1<<20); err == nil {
		t.Error("swapped with a rank that is gone")
	}
}

// The memory of a process can be read where it is, and nowhere else.
func TestReadProcess(t *testing.T) {
	src := bytes.Repeat([]byte("0123456789"), 1000)
	dst := make([]byte, len(src))
	at := uint64(uintptr(unsafe.Pointer(&src[0])))
	if err := readProcess(os.Getpid(), at, dst); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skip(err)
	} else if err != nil || !bytes.Equal(dst, src) {
		t.Errorf("read %.20q…, %v", dst, err)
	}
	if err := readProcess(os.Getpid(), 1, dst); !errors.Is(err, unix.EFAULT) {
		t.Errorf("read what nobody has: %v", err)
	}
	if err := readProcess(math.MaxInt32, at, dst); !errors.Is(err, unix.ESRCH) {
		t.Errorf("read a process that isn't there: %v", err)
	}
	if err := readProcess(math.MaxInt32, at, nil); err != nil {
		t.Errorf("read nothing: %v", err)
	}
}

// Ranks read each other's memory only if both may.
func TestTryReads(t *testing.T) {
	var probe [1]byte
	may := readProcess(os.Getpid(), uint64(uintptr(unsafe.Pointer(&canary))), probe[:]) == nil
	for _, allowed := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		a, b := unixPair(t)
		type result struct {
			pid  int
			both bool
			err  error
		}
		other := make(chan result, 1)
		go func() { // waited for below
			pid, both, err := tryReads(b, allowed[1])
			other <- result{pid, both, err}
		}()
		pid, both, err := tryReads(a, allowed[0])
		want := result{both: may && allowed[0] && allowed[1]}
		if want.both {
			want.pid = os.Getpid()
		}
		if got := (result{pid, both, err}); got != want {
			t.Errorf("allowed %v: %+v, want %+v", allowed, got, want)
		}
		if got := <-other; got != want {
			t.Errorf("allowed %v: the other has %+v, want %+v", allowed, got, want)
		}
	}
	a, b := unixPair(t)
	b.Close()
	if _, both, err := tryReads(a, true); both || err == nil {
		t.Errorf("with a rank that is gone: %v, %v", both, err)
	}
}

// A connection's descriptor is duplicated, and the connection closed. One without a descriptor is an error.
func TestOwn(t *testing.T) {
	pipe, other := net.Pipe()
	defer other.Close()
	if c := own(3, 7, pipe); c.err == nil || c.fd != -1 || c.peer != 3 || c.number != 7 {
		t.Errorf("of a pipe: %+v", c)
	}
	a, b := unixPair(t)
	c := own(3, 7, a)
	if c.err != nil || c.peer != 3 || c.number != 7 || c.seal != nil {
		t.Fatalf("%+v", c)
	}
	defer c.drop()
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still open: %v", err)
	}
	if _, err := unix.Write(c.fd, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	var got [8]byte
	if n, err := b.Read(got[:]); err != nil || string(got[:n]) != "abc" {
		t.Errorf("%q came by it, %v", got[:n], err)
	}
	if _, err := unix.Read(c.fd, got[:]); err != unix.EAGAIN {
		t.Errorf("a read without anything there: %v", err)
	}
}
