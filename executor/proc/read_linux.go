package proc

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canary are the bytes for a peer's try to read this process: random, so no other
// process has the same bytes at the same address.
var canary = func() (b [16]byte) {
	_, _ = rand.Read(b[:]) // it never fails, see its documentation
	return b
}()

// tryReads finds out over a connection to a peer whether the two processes may
// read each other's memory: both try it, once. Only if it works both ways are the
// peer's process id, else 0, and true returned.
func tryReads(c *net.UnixConn, allowed bool) (pid int, both bool, err error) {
	pid, err = peerPID(c)
	if err != nil {
		return 0, false, err
	}
	var mine, theirs [8 + len(canary)]byte
	binary.NativeEndian.PutUint64(mine[:], uint64(uintptr(unsafe.Pointer(&canary))))
	copy(mine[8:], canary[:])
	if err := trade(c, mine[:], theirs[:]); err != nil {
		return 0, false, err
	}
	var got [len(canary)]byte
	can := allowed && readProcess(pid, binary.NativeEndian.Uint64(theirs[:]), got[:]) == nil && bytes.Equal(got[:], theirs[8:])
	verdict, other := []byte{0}, []byte{0}
	if can {
		verdict[0] = 1
	}
	if err := trade(c, verdict, other); err != nil {
		return 0, false, err
	}
	if !can || other[0] != 1 {
		return 0, false, nil
	}
	return pid, true, nil
}

// trade sends and receives as much.
func trade(c net.Conn, out, in []byte) error {
	if _, err := c.Write(out); err != nil {
		return err
	}
	_, err := io.ReadFull(c, in)
	return err
}

// peerPID is the process at the other end, as numbered here.
func peerPID(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, fmt.Errorf("credentials of the peer: %w", err)
	}
	return int(cred.Pid), nil
}
