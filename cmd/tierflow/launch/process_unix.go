//go:build unix && !linux

package launch

import (
	"os/exec"
	"sync"
	"syscall"
)

// rankAttr puts a rank into its own process group.
func rankAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap waits for the process and runs ended under mu. The process id is free by then; in the microseconds between the
// two no system hands it out again.
func reap(cmd *exec.Cmd, mu *sync.Mutex, ended func()) {
	cmd.Wait() // its error is the exit status, read from ProcessState
	mu.Lock()
	defer mu.Unlock()
	ended()
}
