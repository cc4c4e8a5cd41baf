package local

import (
	"container/heap"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// clock holds messages of a shaped world until they are due.
type clock struct {
	hub   *hub
	mu    sync.Mutex
	held  pile
	count uint64
	early chan struct{} // capacity 1: something due sooner has come
	end   chan struct{}
	ended sync.WaitGroup
}

type heldMessage struct {
	due     time.Time
	n       uint64 // keeps the order of what is due at the same time
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
	c.count++
	heap.Push(&c.held, &heldMessage{due, c.count, from, to, *m, append([]byte(nil), payload...)})
	first := c.held[0].n == c.count
	c.mu.Unlock()
	if first {
		select {
		case c.early <- struct{}{}:
		default:
		}
	}
}

func (c *clock) run() {
	s := newSleeper()
	defer s.close()
	for {
		next, some := c.deliver()
		var d time.Duration = -1
		if some {
			d = max(0, time.Until(next)) // negative would be for ever
		}
		if !s.sleep(d, c.early, c.end) {
			return
		}
	}
}

// deliver hands over all that is due and says when the next message is.
func (c *clock) deliver() (next time.Time, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.held) > 0 {
		h := c.held[0]
		if h.due.After(time.Now()) {
			return h.due, true
		}
		heap.Pop(&c.held)
		c.hub.inboxes[h.to].push(h.from, &h.message, h.payload)
	}
	return next, false
}

// pile is a heap of messages, the first due on top.
type pile []*heldMessage

func (p pile) Len() int      { return len(p) }
func (p pile) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p pile) Less(i, j int) bool {
	if !p[i].due.Equal(p[j].due) {
		return p[i].due.Before(p[j].due)
	}
	return p[i].n < p[j].n
}

// Push and Pop are for package heap.
func (p *pile) Push(x any) { *p = append(*p, x.(*heldMessage)) }

// Pop removes the last message.
func (p *pile) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
