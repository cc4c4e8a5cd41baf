package door

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/process"
)

// ProcessorTime returns how long the rank's threads have run, and how long they were ready to
// run and had no processor. known is false if that can't be seen from here.
func (i *Info) ProcessorTime() (ran, delayed time.Duration, known bool) {
	if i.Space == "" || i.Space != process.Space() {
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

// isOwn reports whether a file is this user's.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
