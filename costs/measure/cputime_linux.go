package measure

import (
	"syscall"
	"time"
)

// threadTime returns how long this thread has used a processor. ok says that it is known.
func threadTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
