//go:build !linux

package launch

import (
	"os/exec"
	"sync"
	"syscall"
)

// rankAttr puts a rank into its own process group.
func rankAttr() *syscall.SysProcAttr { return groupAttr() }

// reap waits for the process and calls ended under mu. The process id is free by then,
// but no system hands it out again within the microseconds between.
func reap(cmd *exec.Cmd, mu *sync.Mutex, ended func()) {
	cmd.Wait() // its error is the exit status, read from ProcessState
	mu.Lock()
	defer mu.Unlock()
	ended()
}
