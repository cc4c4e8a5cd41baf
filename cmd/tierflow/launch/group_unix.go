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

// signalGroup sends a signal to the group that a process leads. It fails only when the
// group is gone.
func signalGroup(leader int, s syscall.Signal) { _ = syscall.Kill(-leader, s) }

// inBackground reports whether f is a terminal that another job of its shell has: who
// reads it then is stopped.
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
