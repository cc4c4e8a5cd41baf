package process

import (
	"context"
	"time"
)

// Born returns when a process began, in ticks since the machine did; 0: it has ended, or can't be seen.
func Born(pid int) uint64 {
	born, _, _ := stat(pid)
	return born
}

// Look reports whether a process has ended, or is stopped. born is 0 if it isn't known when it began; space is
// that of pid. known is false if this can't be seen from here.
func Look(pid int, born uint64, space string) (ended, stopped, known bool) {
	now, stopped, known := stat(pid)
	ended = now == 0 || born != 0 && now != born // another process has the number
	return ended, stopped, known && space != "" && space == Space()
}

// lookEvery is the time between two looks at a process that the system doesn't tell the end of.
const lookEvery = time.Second

// AwaitEnd blocks until a process has ended, and reports true then: at once, or within a second on a system
// before Linux 5.3. It reports false when ctx ends first, or if the process can't be seen from here. It
// holds a descriptor meanwhile.
func AwaitEnd(ctx context.Context, pid int, born uint64, space string) bool {
	waiter := open(pid)
	if waiter != nil {
		defer waiter.Close()
	}
	ended, _, known := Look(pid, born, space) // if it runs, the waiter is of no other process
	if ended || !known {
		return known && ctx.Err() == nil
	}
	if waiter != nil {
		defer context.AfterFunc(ctx, func() { waiter.Close() })()
		if hasEnded(waiter) {
			return true
		}
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
			if ended, _, known := Look(pid, born, space); ended || !known {
				return known
			}
		}
	}
}
