//go:build !unix

package join

import (
	"errors"
	"net"
)

// listenUnix is an error: on this system nobody can ask for the user at the other end.
func listenUnix() (net.Listener, string, error) { return nil, "", errors.ErrUnsupported }

func socketOwner(int) (uint32, error) { return 0, errors.ErrUnsupported }
