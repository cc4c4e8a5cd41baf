package executor

import (
	"slices"

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
// wait for one to a host that is silent.
func (c *control) sendLetter(to levels.Rank, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		return
	}
	list, busy := c.letters[to]
	if len(list) == mostLetters {
		list = list[1:]
	}
	if c.letters == nil {
		c.letters = map[levels.Rank][][]byte{}
	}
	c.letters[to] = append(list, b)
	if !busy {
		c.takers.Go(func() { c.carryLetters(to) })
	}
}

// carryLetters carries the letters to one rank until there are none.
func (c *control) carryLetters(to levels.Rank) {
	for {
		c.mu.Lock()
		list := c.letters[to]
		if len(list) == 0 || c.ended.Load() {
			delete(c.letters, to)
			c.mu.Unlock()
			return
		}
		letter := list[0]
		c.letters[to] = list[1:]
		c.mu.Unlock()
		_ = c.deliverBy(c.job.Recall, errand{to, ballotControl, letter}) // who can't be reached doesn't hear it
	}
}
