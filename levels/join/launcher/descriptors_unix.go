//go:build unix

package launcher

import (
	"os"

	"golang.org/x/sys/unix"
)

// duplicate opens a duplicate of an inherited descriptor under a name for errors. Children
// of this process inherit neither.
func duplicate(fd int, name string) (*os.File, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(dup), name), nil
}

// takePipe returns a function that writes to an inherited pipe, nil if it isn't open for writing. Children
// of this process don't inherit it; without a reader the line is lost.
func takePipe(fd int) func(line []byte) {
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE != unix.O_WRONLY {
		return nil
	}
	unix.CloseOnExec(fd)
	return func(line []byte) { _, _ = unix.Write(fd, line) }
}

// readNow reads the bytes in a pipe, and returns how many; it doesn't wait.
func readNow(pipe *os.File, b []byte) (n int) {
	if raw, err := pipe.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), b) })
	}
	return max(n, 0)
}

// openSocket opens a duplicate of an inherited socket. Reads and writes wait without a thread. Children of this
// process inherit neither.
func openSocket(fd int, name string) (*os.File, error) {
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return duplicate(fd, name)
}
