//go:build !linux

package launch

import (
	"errors"
)

// hostProcessors is an error: only Linux lets a launcher bind.
func hostProcessors() ([]processor, error) {
	return nil, errors.New("--bind: only Linux lets a launcher choose the processors of its ranks; give --bind " + bindNone)
}

// onProcessors calls f.
func onProcessors(_ []int, f func() error) error { return f() }
