package launch

import (
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rankAttr puts a rank into its own process group, and has the kernel kill it with the thread of
// its start.
func rankAttr() *syscall.SysProcAttr {
	attr := groupAttr()
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// reap waits for the process and calls ended under mu, while the numbers of the
// process and its group can't be used again.
func reap(cmd *exec.Cmd, mu *sync.Mutex, ended func()) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	ended()
	cmd.Wait() // its error is the exit status, read from ProcessState
}
