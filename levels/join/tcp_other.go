//go:build !linux

package join

import (
	"net"
	"time"
)

// giveUpUnacked has nothing to set: this system has no TCP_USER_TIMEOUT. A silent
// host is still seen by keepalive while nothing is being sent.
func giveUpUnacked(*net.TCPConn, time.Duration) error { return nil }

// systemSent: this system has no TCP_INFO of Linux's form.
func systemSent(*net.TCPConn) sent { return sent{} }
