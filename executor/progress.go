package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/wire"
)

// looksPerClock is how many idle looks a driver with [Config.Progress] takes between two
// looks at the clock, at its context and at what has stalled.
const looksPerClock = 64

// lendThread calls Config.Progress in place of a sleep: nothing would wake a rank for what
// the other library is waiting for. idle counts the looks since there was something to do.
// The lock is held before and after, but not meanwhile.
func (e *Endpoint) lendThread(idle int) {
	e.mu.Unlock()
	e.world.config.Progress()
	e.sleeper.Yield(idle)
	e.mu.Lock()
	if idle%looksPerClock != 0 {
		return
	}
	e.flight.Tick()
	e.pause()
	if now := time.Now(); now.Sub(e.looked) >= wire.Tick {
		e.looked = now
		e.lookAround()
	}
}
