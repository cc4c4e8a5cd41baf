package join

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnacked ends the connection when sent data stays unacknowledged, or
// probes unanswered, for d.
func giveUpUnacked(c *net.TCPConn, d time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var optErr error
	if err := raw.Control(func(fd uintptr) {
		optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	}); err != nil {
		return err
	}
	return optErr
}

// systemSent reads TCP_INFO; an error leaves the zero value.
func systemSent(c *net.TCPConn) (s sent) {
	raw, err := c.SyscallConn()
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			// What a device of this host drops counts as not sent, and is probed for as for room.
			s = sent{info.Bytes_acked, int(info.Unacked + info.Notsent_bytes), int(max(info.Retransmits, info.Probes)), int(info.Pmtu)}
		}
	})
	return s
}
