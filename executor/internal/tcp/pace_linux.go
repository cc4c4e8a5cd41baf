//go:build linux

package tcp

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pace finds out whether a connection is fast: then a packet costs the processors more
// than the wire, and several frames share packets. The bytes acknowledged by the peer since
// the last look, over the time since then, is a lower bound of the rate: the rank may have
// had nothing to send. So a connection is fast when one look shows it, and until many
// looks have not.
type pace struct {
	fast  bool
	sent  int       // bytes since the last look; 0 <= sent
	queue int       // bytes not acknowledged at the last look
	last  time.Time // of the last look
	vain  int       // looks since the last fast one
	reply int32     // the kernel's, a field so looking allocates nothing
}

const (
	// fastFrom is the least rate of a fast connection, bytes per second. It is
	// twice the rate of links of 1 Gbit/s: their buffers may take a burst.
	fastFrom = 250e6
	// lookEvery is after how many bytes to look.
	lookEvery = 128 << 10
	// mostVain is how many looks in vain make a connection slow again.
	mostVain = 64
)

// watch counts n bytes as sent, and looks now and then.
func (p *pace) watch(fd, n int) {
	if p.sent += n; p.sent < lookEvery {
		return
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(&p.reply)))
	if errno != 0 {
		return
	}
	now := time.Now()
	acked, took := p.sent+p.queue-int(p.reply), now.Sub(p.last)
	p.sent, p.queue, p.last = 0, int(p.reply), now
	if float64(acked) >= fastFrom*took.Seconds() {
		p.fast, p.vain = true, 0
	} else if p.vain++; p.vain > mostVain {
		p.fast = false
	}
}
