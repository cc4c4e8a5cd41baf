//go:build unix

package executor

import (
	"os"
	"syscall"
)

// quit sends this process the signal that ends it with the stacks of its goroutines.
func quit() { _ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) }
