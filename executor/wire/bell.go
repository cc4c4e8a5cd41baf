package wire

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Bell is a [Sleeper] for a rank with messages from other goroutines of its process. These put a
// message into the rank's sight, then ring. Before it is used it is told to Listen.
type Bell struct {
	heard    func() bool   // see Listen
	signal   chan struct{} // capacity 1
	sleeping atomic.Bool
	timer    *time.Timer // nil before the first Park
	on       bool        // the timer runs
}

var _ Sleeper = (*Bell)(nil)

// Listen prepares a bell. heard reports whether something has come since the last Poll:
// everything done before a Ring must show in it.
func (b *Bell) Listen(heard func() bool) {
	b.heard, b.signal = heard, make(chan struct{}, 1)
}

// Ring wakes the rank if it sleeps. The caller has put its message there before; the rank sets its flag
// for sleep before it looks a last time. Any goroutine may call it.
func (b *Bell) Ring() {
	if b.sleeping.Load() {
		b.Wake()
	}
}

// Wake ends a Park, now or the next one.
func (b *Bell) Wake() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// IsRung reports whether the next Park will return at once.
func (b *Bell) IsRung() bool { return len(b.signal) > 0 }

// Yield lets other goroutines run.
func (b *Bell) Yield(int) { runtime.Gosched() }

// Arm announces a Park, and returns false if something has come.
func (b *Bell) Arm() bool {
	b.sleeping.Store(true)
	if b.heard() {
		b.sleeping.Store(false)
		return false
	}
	return true
}

// Park blocks until the bell rings, done is closed or a Tick has passed.
func (b *Bell) Park(done <-chan struct{}) (ticked bool) {
	select {
	case <-b.signal:
	case <-done:
	case <-b.tick():
		b.on = false
		ticked = true
	}
	b.sleeping.Store(false)
	return ticked
}

// tick arms the timer, but only after it has fired: so parking costs nothing.
func (b *Bell) tick() <-chan time.Time {
	switch {
	case b.timer == nil:
		b.timer = time.NewTimer(Tick)
	case !b.on:
		b.timer.Reset(Tick)
	}
	b.on = true
	return b.timer.C
}
