package launch

import (
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rankAttr puts a rank into its own process group and has the kernel kill it when the thread that started it ends.
func rankAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the process and runs ended under mu, before the process id, and so that of its group, can be used again.
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
