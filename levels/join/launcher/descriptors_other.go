//go:build !unix

package launcher

import (
	"errors"
	"os"
)

// duplicate is an error: this system passes no descriptor by its number.
func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// openSocket is an error, as duplicate is.
func openSocket(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// takePipe is nil: ranks are processes on Linux only.
func takePipe(int) func(line []byte) { return nil }

// readNow finds nothing in a pipe.
func readNow(*os.File, []byte) int { return 0 }
