package executor

import (
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// mostLetters bounds those that wait for one rank. What is lost is said again.
const mostLetters = 16

// sendBallot sends a message of an agreement. A rank that counts as lost may live: it must hear that
// it is excluded.
func (c *control) sendBallot(to levels.Rank, n note) {
	b := n.bytes()
	if slices.Contains(c.job.CutOff(), to) || c.job.Send(to, ballotControl, b) != nil {
		c.sendLetter(to, b)
	}
}

// sendLetter sends a message over a connection of its own, after those before it. Others' letters don't
// wait for one to a host that is silent. One that waits, or was carried a moment ago, is not sent again.
func (c *control) sendLetter(to levels.Rank, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		return
	}
	if c.letters == nil {
		c.letters = map[levels.Rank]*postbag{}
	}
	bag := c.letters[to]
	if bag == nil {
		bag = &postbag{}
		c.letters[to] = bag
	}
	if bag.has(b) {
		return
	}
	if len(bag.waiting) == mostLetters {
		bag.waiting = bag.waiting[1:]
	}
	bag.waiting = append(bag.waiting, b)
	if !bag.busy {
		bag.busy = true
		c.takers.Go(func() { c.carryLetters(to, bag) })
	}
}

// carryLetters carries the letters to one rank until there are none.
func (c *control) carryLetters(to levels.Rank, bag *postbag) {
	for {
		c.mu.Lock()
		if bag.busy = len(bag.waiting) > 0 && !c.ended.Load(); !bag.busy {
			c.mu.Unlock()
			return
		}
		letter := bag.waiting[0]
		bag.waiting, bag.carried = bag.waiting[1:], append(bag.carried, carriedLetter{letter, time.Now()})
		bag.carried = bag.carried[max(0, len(bag.carried)-mostLetters):]
		c.mu.Unlock()
		if err := c.deliverBy(c.job.Recall, errand{to, ballotControl, letter}); err != nil { // it may be tried again at once
			c.mu.Lock()
			bag.carried = bag.carried[:len(bag.carried)-1]
			c.mu.Unlock()
		}
	}
}
