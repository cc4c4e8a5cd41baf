package local

import (
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// clock holds messages of a shaped world until they are due.
type clock struct {
	hub   *hub
	mu    sync.Mutex
	held  wire.Fifo[*heldMessage] // by due, then in the order of hold
	early chan struct{}           // capacity 1: something due sooner has come
	end   chan struct{}
	ended sync.WaitGroup
}

type heldMessage struct {
	due     time.Time
	from    levels.Rank
	to      levels.Rank
	message wire.Message
	payload []byte
}

// newClock starts the goroutine that delivers; stop ends it.
func newClock(h *hub) *clock {
	c := &clock{hub: h, early: make(chan struct{}, 1), end: make(chan struct{})}
	c.ended.Go(c.run)
	return c
}

func (c *clock) stop() {
	close(c.end)
	c.ended.Wait()
}

// hold keeps a message until due.
func (c *clock) hold(due time.Time, from, to levels.Rank, m *wire.Message, payload []byte) {
	c.mu.Lock()
	at, _ := slices.BinarySearchFunc(c.held.All(), due, func(h *heldMessage, due time.Time) int {
		if h.due.After(due) {
			return 1
		}
		return -1 // also if equal: a later message goes behind
	})
	c.held.Insert(at, &heldMessage{due, from, to, *m, slices.Clone(payload)})
	c.mu.Unlock()
	if at == 0 {
		select {
		case c.early <- struct{}{}:
		default:
		}
	}
}

func (c *clock) run() {
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		next, some := c.deliver()
		var d time.Duration = -1
		if some {
			d = max(0, time.Until(next)) // negative would be for ever
		}
		if !sleep(timer, d, c.early, c.end) {
			return
		}
	}
}

// deliver hands over all due messages and returns the time of the next one.
func (c *clock) deliver() (next time.Time, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held.Len() > 0 {
		h := *c.held.First()
		if h.due.After(time.Now()) {
			return h.due, true
		}
		c.held.Pop()
		c.hub.inboxes[h.to].push(h.from, &h.message, h.payload)
	}
	return next, false
}
