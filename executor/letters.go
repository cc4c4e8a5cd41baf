package executor

import (
	"net"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// mostLetters bounds the letters waiting for one rank. A lost one is said again.
const mostLetters = 16

// lineTime is how long a connection stays for the next letter. An agreement takes some of them each
// way, and connecting takes longer than all else.
const lineTime = 50 * time.Millisecond

// sendBallot sends a message of an agreement. A rank counted as lost may live: it must hear of its
// exclusion.
func (c *control) sendBallot(to levels.Rank, n note) {
	b := n.bytes()
	if slices.Contains(c.job.CutOff(), to) || c.job.Send(to, ballotControl, b) != nil {
		c.sendLetter(to, b)
	}
}

// sendLetter sends a message over a connection for letters to its rank, after those before it. A
// silent host delays only the letters to it. A letter still waiting, or carried a moment ago, is
// not sent again.
func (c *control) sendLetter(to levels.Rank, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		return
	}
	bag := c.letters[to]
	if bag == nil {
		bag = &postbag{more: make(chan struct{}, 1)}
		c.letters[to] = bag
	}
	if bag.has(b) {
		return
	}
	if len(bag.waiting) == mostLetters {
		bag.waiting = bag.waiting[1:]
	}
	bag.waiting = append(bag.waiting, b)
	bag.signal()
	if !bag.busy {
		bag.busy = true
		c.background.Go(func() { c.carryLetters(to, bag) })
	}
}

// carryLetters carries the letters to one rank until there are none, over one connection as long as
// they follow each other.
func (c *control) carryLetters(to levels.Rank, bag *postbag) {
	var line net.Conn
	for letter := c.nextLetter(bag, false); letter != nil; letter = c.nextLetter(bag, line != nil) {
		e := errand{to, ballotControl, letter}
		if line != nil {
			if writeErrand(line, e) == nil {
				continue
			}
			line.Close()
		}
		var err error
		if line, err = c.deliverBy(c.job.Recall, e); err != nil { // it may be tried again at once
			c.mu.Lock()
			bag.carried = bag.carried[:len(bag.carried)-1]
			c.mu.Unlock()
		}
	}
	if line != nil {
		line.Close()
	}
}

// nextLetter takes the letter with the longest wait; nil: there is none, and the carrier ends. With
// wait it waits lineTime for the next one.
func (c *control) nextLetter(bag *postbag, wait bool) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait && len(bag.waiting) == 0 {
		bag.drain() // the signal of a letter taken already
		c.mu.Unlock()
		select {
		case <-bag.more:
		case <-time.After(lineTime):
		}
		c.mu.Lock()
	}
	if bag.busy = len(bag.waiting) > 0 && !c.ended.Load(); !bag.busy {
		return nil
	}
	letter := bag.waiting[0]
	bag.waiting = bag.waiting[1:]
	bag.carried = append(bag.carried, carriedLetter{letter, time.Now()})
	bag.carried = bag.carried[max(0, len(bag.carried)-mostLetters):]
	return letter
}
