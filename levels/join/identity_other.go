//go:build !unix

package join

import "errors"

// kernelIdentity is an error: this system names no boot of its own.
func kernelIdentity() (boot, net string, err error) { return "", "", errors.ErrUnsupported }
