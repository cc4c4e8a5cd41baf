package join

import (
	"fmt"
	"net"
	"os"
)

// checkOwner refuses a unix connection to another user: names
// of sockets are visible to all users of a host. TCP connections pass.
func checkOwner(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var uid uint32
	var credErr error
	if err := raw.Control(func(fd uintptr) { uid, credErr = socketOwner(int(fd)) }); err != nil {
		return err
	}
	if credErr != nil {
		return fmt.Errorf("owner of the unix socket: %w", credErr)
	}
	if me := uint32(os.Geteuid()); uid != me {
		return fmt.Errorf("the other end of the unix socket belongs to user %d; allowed is %d", uid, me)
	}
	return nil
}
