//go:build unix

package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkSystem accepts this system: it has signals and groups of processes.
func checkSystem() error { return nil }

// signalNames are the signals from a launcher to ranks. All but the last are forwarded
// when the launcher gets them.
var signalNames = []signalName{
	{syscall.SIGINT, "INT"},
	{syscall.SIGTERM, "TERM"},
	{syscall.SIGHUP, "HUP"},
	{syscall.SIGUSR1, "USR1"},
	{syscall.SIGUSR2, "USR2"},
	{syscall.SIGQUIT, "QUIT"},
	{syscall.SIGKILL, "KILL"},
}

// groupAttr makes a process the leader of a group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the group led by a process. It fails only when the group is gone.
func signalGroup(leader int, s syscall.Signal) { _ = syscall.Kill(-leader, s) }

// socketPair returns two ends of a connection. Children don't inherit them by themselves.
func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(fds[0], true) // else a thread waits there
	return os.NewFile(uintptr(fds[0]), "a rank's lobby"), os.NewFile(uintptr(fds[1]), "lobby"), nil
}

// inBackground reports whether f is a terminal in the hands of another job of its shell. Reading
// it stops a process.
func inBackground(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	group := unix.Getpgrp()
	if raw.Control(func(fd uintptr) { group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }) != nil {
		return false
	}
	return err == nil && group != unix.Getpgrp()
}
