package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Space names the name space in which process numbers are this process's; empty: it can't be seen.
func Space() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// stat returns when a process began, in ticks since the machine did, and whether it
// is stopped. born is 0 for one that has ended; known is false if that can't be seen.
func stat(pid int) (born uint64, stopped, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		_, err := os.Stat("/proc/self/stat")
		return 0, false, err == nil
	}
	at := bytes.LastIndexByte(text, ')') // the name before it may have blanks
	fields := bytes.Fields(text[at+1:])
	const state, threads, start = 0, 17, 19 // see proc_pid_stat(5), from its third field on
	if err != nil || at < 0 || len(fields) <= start {
		return 0, false, false
	}
	switch fields[state][0] {
	case 'Z', 'X':
		if n := string(fields[threads]); n == "0" || n == "1" { // else its first thread has ended, and others have not
			return 0, false, true
		}
	case 'T', 't':
		stopped = true
	}
	born, err = strconv.ParseUint(string(fields[start]), 10, 64)
	return born, stopped, err == nil
}

// open returns a descriptor of a process; nil: the system has none, or there is no process.
func open(pid int) *os.File {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	_ = unix.SetNonblock(fd, true) // else hasEnded fails
	return os.NewFile(uintptr(fd), "process")
}

// hasEnded blocks until the process of a descriptor has ended; false: it was closed, or can't be waited for.
func hasEnded(f *os.File) (ended bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = n > 0 && err == nil
		return ended
	})
	return ended
}
