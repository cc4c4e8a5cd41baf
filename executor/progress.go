package executor

import (
	"time"

	"github.com/tierflow/tierflow/executor/wire"
)

// looksPerClock is the number of idle looks between two looks at the context and at stalls, for a driver
// with [Config.Progress].
const looksPerClock = 64

// lendThread calls Config.Progress in place of a sleep: the other library's events would not wake a
// rank. idle counts the looks since there was something to do. The lock is held before and after,
// but not meanwhile.
func (e *Endpoint) lendThread(idle int) {
	e.mu.Unlock()
	e.world.config.Progress()
	e.sleeper.Yield(idle)
	e.mu.Lock()
	if idle == 1 || idle%readEvery == 0 {
		e.tickIdle(e.flight, idle)
	}
	if idle%looksPerClock != 0 {
		return
	}
	e.pause()
	if now := time.Now(); now.Sub(e.lastLook) >= wire.Tick {
		e.lastLook = now
		e.lookAround()
	}
}
