package local

import (
	"runtime"
	"time"
)

// coarse is the longest delay of a timer.
const coarse = 1500 * time.Microsecond

// sleep waits for d (for ever if negative), or until early is signalled, or end
// is closed: then it returns false. The runtime's timers are good to about a
// millisecond on an idle process, too long for an emulated link of 50 µs: below
// that it yields in a loop until the time has come. timer is stopped before and after.
func sleep(timer *time.Timer, d time.Duration, early, end <-chan struct{}) bool {
	if d >= 0 && d < coarse {
		for until := time.Now().Add(d); time.Now().Before(until); runtime.Gosched() {
			select {
			case <-early:
				return true
			case <-end:
				return false
			default:
			}
		}
		return true
	}
	var timeout <-chan time.Time
	if d >= 0 {
		timer.Reset(d - coarse)
		timeout = timer.C
		defer timer.Stop()
	}
	select {
	case <-early:
	case <-timeout:
	case <-end:
		return false
	}
	return true
}
