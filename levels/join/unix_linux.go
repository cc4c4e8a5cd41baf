package join

import (
	"crypto/rand"
	"net"

	"golang.org/x/sys/unix"
)

// listenUnix opens a socket in the abstract namespace: it leaves no file behind,
// however the process ends.
func listenUnix() (l net.Listener, path string, err error) {
	path = "@tierflow-" + rand.Text()
	l, err = net.Listen("unix", path)
	return l, path, err
}

func socketOwner(fd int) (uint32, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
