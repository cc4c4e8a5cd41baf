//go:build linux || darwin

package flight

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile makes a file of n zero bytes and maps it. The bytes are written: so
// a full disk is an error here and not a fault later.
func mapFile(path string, n int) (mem []byte, unmap func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		defer func() { err = errors.Join(err, f.Close()) }()
		if _, err = f.Write(make([]byte, n)); err != nil {
			_ = os.Remove(path) // half of it is no recording, and would stay for ever
		}
	}
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			err = p.Err // the caller names the file
		}
		return nil, nil, err
	}
	mem, err = unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return mem, func() error { return unix.Munmap(mem) }, nil
}
