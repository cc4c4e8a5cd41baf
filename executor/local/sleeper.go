package local

import (
	"runtime"
	"time"
)

// sleeper waits for an instant or a signal. The runtime's timers are good to
// about a millisecond on an idle process, which an emulated link of 50 µs can't
// use: below that the sleeper yields in a loop until the time has come.
type sleeper struct{ timer *time.Timer }

func newSleeper() *sleeper {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &sleeper{t}
}

func (s *sleeper) close() { s.timer.Stop() }

// coarse is what a timer may be late by.
const coarse = 1500 * time.Microsecond

// sleep waits for d (for ever if negative), or until early is signalled, or end
// is closed: then it returns false.
func (s *sleeper) sleep(d time.Duration, early, end <-chan struct{}) bool {
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
		s.timer.Reset(d - coarse)
		timeout = s.timer.C
		defer s.timer.Stop()
	}
	select {
	case <-early:
	case <-timeout:
	case <-end:
		return false
	}
	return true
}
