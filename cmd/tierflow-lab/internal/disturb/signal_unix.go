//go:build unix

package disturb

import (
	"errors"
	"fmt"
	"syscall"
)

func stopProcess(pid int) error     { return signalProcess(pid, syscall.SIGSTOP) }
func continueProcess(pid int) error { return signalProcess(pid, syscall.SIGCONT) }

// signalProcess sends a signal. A process that has ended is no error.
func signalProcess(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to process %d: %w", s, pid, err)
	}
	return nil
}
