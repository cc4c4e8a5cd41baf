//go:build unix

package join

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// inherit opens a duplicate of a listening socket that this process inherited.
func inherit(fd int) (net.Listener, error) {
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, err
	}
	if listening == 0 {
		return nil, errors.New("nobody called listen on it")
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd) // children of the program are no ranks
	f := os.NewFile(uintptr(dup), "rendezvous")
	defer f.Close()
	return net.FileListener(f)
}

// readNow reads the bytes here after any deadline; none is the error if nothing is here.
func readNow(c net.Conn, p []byte, none error) (n int, err error) {
	s, ok := c.(syscall.Conn)
	if !ok || len(p) == 0 {
		return 0, none
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, none
	}
	if closed := raw.Control(func(fd uintptr) {
		for err = unix.EINTR; err == unix.EINTR; {
			n, err = unix.Read(int(fd), p)
		}
	}); closed != nil {
		return 0, none
	}
	switch {
	case err == unix.EAGAIN:
		return 0, none
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
