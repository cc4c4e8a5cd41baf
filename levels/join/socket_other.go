//go:build !unix

package join

import (
	"errors"
	"net"
)

// inherit is an error: this system passes no socket by its number.
func inherit(int) (net.Listener, error) { return nil, errors.ErrUnsupported }

// readNow takes nothing: only a descriptor can be read after the deadline.
func readNow(_ net.Conn, _ []byte, none error) (int, error) { return 0, none }
