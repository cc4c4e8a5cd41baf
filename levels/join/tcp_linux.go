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
