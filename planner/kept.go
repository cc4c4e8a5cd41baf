package planner

import "github.com/tierflow/tierflow/tasks"

// Bounds of the one-shot calls whose programs and memory a communicator keeps. The one
// that was used least recently goes first.
const (
	keptPrograms = 1024
	keptBytes    = 64 << 20 // of programs, scratch and shared slots together
)

// cacheUse says how much a communicator keeps for one-shot calls. Comm.mu guards it.
type cacheUse struct {
	bytes int64  // of all: [executor.Run.Footprint]
	clock uint64 // of uses; each moves it on by one
}

// touch marks a collective as the one used last.
func (k *cacheUse) touch(col *Collective) {
	k.clock++
	col.used = k.clock
}

// keep remembers a one-shot call's collective, and forgets others as long as they are too
// many or too large. Forgetting one looks at all of them: far less work than compiling the
// one that needs the room. c.mu is held.
func (c *Comm) keep(r tasks.Request, col *Collective) {
	c.forget(r)
	c.cache[r] = col
	c.cacheUse.bytes += col.run.Footprint()
	c.cacheUse.touch(col)
	for len(c.cache) > keptPrograms || c.cacheUse.bytes > keptBytes && len(c.cache) > 1 {
		c.forget(c.stalest())
	}
}

// forget drops what is kept for a request, if there is anything.
func (c *Comm) forget(r tasks.Request) {
	if col := c.cache[r]; col != nil {
		c.cacheUse.bytes -= col.run.Footprint()
		delete(c.cache, r)
		for i := range c.recent {
			if c.recent[i].col == col {
				c.recent[i] = recent{}
			}
		}
	}
}

// stalest is the request whose collective was used least recently.
func (c *Comm) stalest() (r tasks.Request) {
	least := c.cacheUse.clock + 1
	for key, col := range c.cache {
		if col.used < least {
			r, least = key, col.used
		}
	}
	return r
}

// recent is a one-shot call by bytes that has ended well. It is found again without a look
// at all that makes the request, which takes longer than a short call.
type recent struct {
	asked      tasks.Request
	col        *Collective // in Comm.cache; nil: none
	send, recv int         // lengths of its buffers
}

// recents is how many of them a communicator remembers.
const (
	recentBits = 6
	recents    = 1 << recentBits
)

// slotOf is where a request is remembered.
func slotOf(r tasks.Request) int {
	return int(((uint64(r.Count)<<24 ^ uint64(r.Root)<<8 ^ uint64(r.Coll)) * 0x9e3779b97f4a7c15) >> (64 - recentBits))
}
