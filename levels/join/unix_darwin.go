package join

import (
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// listenUnix opens a socket in a fresh folder for this user alone. Its
// close removes both.
func listenUnix() (net.Listener, string, error) {
	dir, err := os.MkdirTemp("", "tf")
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		os.Remove(dir)
		return nil, "", err
	}
	return folderListener{l, dir}, path, nil
}

type folderListener struct {
	net.Listener
	dir string
}

func (l folderListener) Close() error {
	err := l.Listener.Close()
	os.Remove(l.dir)
	return err
}

func socketOwner(fd int) (uint32, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
