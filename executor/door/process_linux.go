package door

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// processStat returns when a process began, in ticks since the machine did, and whether it
// is stopped. born is 0 for one that has ended; known is false if that can't be seen.
func processStat(pid int) (born uint64, stopped, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		_, err := os.Stat("/proc/self/stat")
		return 0, false, err == nil
	}
	at := bytes.LastIndexByte(text, ')') // the name before it may have blanks
	fields := bytes.Fields(text[at+1:])
	const state, start = 0, 19 // see proc_pid_stat(5), from its third field on
	if err != nil || at < 0 || len(fields) <= start {
		return 0, false, false
	}
	switch fields[state][0] {
	case 'Z', 'X':
		return 0, false, true
	case 'T', 't':
		stopped = true
	}
	born, err = strconv.ParseUint(string(fields[start]), 10, 64)
	return born, stopped, err == nil
}

// ProcessorTime returns how long the rank's threads have run, and how long they were ready to
// run and had no processor. known is false if that can't be seen from here.
func (i *Info) ProcessorTime() (ran, delayed time.Duration, known bool) {
	if i.Space == "" || i.Space != pidSpace() {
		return 0, 0, false
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", i.PID)) // the pattern is well formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		var on, off int64
		if _, bad := fmt.Sscan(string(text), &on, &off); err == nil && bad == nil {
			ran, delayed, known = ran+time.Duration(on), delayed+time.Duration(off), true
		}
	}
	return ran, delayed, known
}

// pidSpace names the name space in which process ids are this process's.
func pidSpace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// isOwn reports whether a file is this user's.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
