//go:build unix

package labkit

import (
	"os/exec"
	"syscall"
)

// GroupOf makes a command that has not started a group of processes. The end of its context
// ends the group. kill kills the processes left behind by the command; none is no error.
func GroupOf(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
