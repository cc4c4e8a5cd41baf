package local

import (
	"runtime"
	"time"
)

// coarse is the longest delay of a timer.
const coarse = 1500 * time.Microsecond

// frozen is how many looks in a row show the same time on a clock that stands still while anybody computes, as in a
// bubble of testing/synctest. The clock of a machine moves from one look to the next, or after some.
const frozen = 1000

// sleep waits for d (for ever if negative), or until early is signalled, or end is closed: then it returns false. The
// runtime's timers are good to about a millisecond on an idle process, too long for an emulated link of 50 µs: below that
// it yields in a loop until the time has come, if time passes in a loop. timer is stopped before and after.
func sleep(timer *time.Timer, d time.Duration, early, end <-chan struct{}) bool {
	if d < 0 || d > coarse {
		return await(timer, d-coarse, early, end)
	}
	begin := time.Now()
	until := begin.Add(d)
	for looks, now := 0, begin; now.Before(until); now = time.Now() {
		if looks++; looks > frozen && now.Equal(begin) {
			return await(timer, d, early, end)
		}
		select {
		case <-early:
			return true
		case <-end:
			return false
		default:
		}
		runtime.Gosched()
	}
	return true
}

// await is sleep by a timer alone; it may be late.
func await(timer *time.Timer, d time.Duration, early, end <-chan struct{}) bool {
	var timeout <-chan time.Time
	if d >= 0 {
		timer.Reset(d)
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
