package proc

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Shared takes memory out of the rank's segment, if it shares its node.
func (p *process) Shared(n int64) ([]byte, func(), error) {
	switch {
	case p.closed: // written with the engine's lock too
		return nil, nil, executor.ErrClosed
	case n == 0 || p.own == nil:
		return wire.Heap(n)
	}
	return p.own.Alloc(n)
}

// Lend is Shared, but the memory stays mapped.
func (p *process) Lend(n int64) ([]byte, func(), error) {
	if p.closed || n == 0 || p.own == nil {
		return p.Shared(n)
	}
	return p.own.Lend(n)
}

// Readable reports whether at lies in the segment, or all may read this process.
func (p *process) Readable(at unsafe.Pointer) bool {
	if p.own != nil && at != nil && p.own.Holds(at, 0) {
		return true
	}
	for _, l := range p.near {
		if !l.IsReadable {
			return false
		}
	}
	return true
}

// Read copies memory of another process; the kernel does it.
func (p *process) Read(from levels.Rank, address uint64, dst []byte) error {
	l, ok := p.links[from].(*shm.Link)
	if !ok || l.PID == 0 {
		return fmt.Errorf("%w: memory of a rank that can't be read", executor.ErrProtocol)
	}
	return readProcess(l.PID, address, dst)
}

// Holds asks the segment of a rank of the node.
func (p *process) Holds(from levels.Rank, at unsafe.Pointer, n int64) bool {
	l, ok := p.links[from].(*shm.Link)
	return ok && l.Holds(at, n)
}

// readProcess copies memory of another process; the kernel does it, once.
func readProcess(pid int, address uint64, dst []byte) error {
	for len(dst) > 0 {
		here := unix.Iovec{Base: &dst[0]}
		here.SetLen(len(dst))
		there := unix.RemoteIovec{Base: uintptr(address), Len: len(dst)}
		wire.AnnounceWrite(dst)
		n, _, errno := syscall.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid),
			uintptr(unsafe.Pointer(&here)), 1, uintptr(unsafe.Pointer(&there)), 1, 0)
		if errno != 0 {
			return errno
		}
		dst, address = dst[n:], address+uint64(n)
	}
	return nil
}

// Intact asks the segment of a rank of the node.
func (p *process) Intact(from levels.Rank, comm wire.CommID, age uint64) bool {
	l, ok := p.links[from].(*shm.Link)
	return !ok || l.Intact(comm, age)
}

// Leave notes in the rank's segment that a communicator has broken.
func (p *process) Leave(comm wire.CommID) {
	if p.own != nil {
		p.own.Leave(comm)
	}
}
