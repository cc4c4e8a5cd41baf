package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns how long this thread has used a processor. ok says that it is known. The clock
// is exact; getrusage counts ticks.
func threadTime() (used time.Duration, ok bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
