package tcp

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
)

// Flow asks the system for the rate of sent bytes, and adds the pace of payloads that came.
func (l *Link) Flow() (f wire.Flow, known bool) {
	f.In = l.came.pace()
	known = f.In.Best > 0
	if l.send < 0 {
		return f, known
	}
	info, err := unix.GetsockoptTCPInfo(l.send, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Delivery_rate == 0 {
		return f, known
	}
	f.Rate = int64(info.Delivery_rate)
	f.Full, f.Bytes = !isLimitedBySender(info), int64(info.Bytes_acked)
	f.Busy = time.Duration(info.Busy_time-min(info.Busy_time, info.Rwnd_limited)) * time.Microsecond
	return f, true
}

// Lapses returns how often in a row the system has sent the oldest packet on its way again, because no word of its arrival came.
func (l *Link) Lapses() int {
	if l.send < 0 {
		return 0
	}
	info, err := unix.GetsockoptTCPInfo(l.send, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Unacked == 0 {
		return 0
	}
	return int(info.Retransmits)
}

// isLimitedBySender reports whether the sender had too little to send in the time of the
// rate. The flag is the lowest bit of a byte without a name: it is the last before Rto.
func isLimitedBySender(info *unix.TCPInfo) bool {
	flags := *(*byte)(unsafe.Add(unsafe.Pointer(info), unsafe.Offsetof(info.Rto)-1))
	return flags&1 != 0
}
