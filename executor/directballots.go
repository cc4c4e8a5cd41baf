package executor

import (
	"net"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// mostQueued bounds the messages waiting for one rank. A lost one is said again.
const mostQueued = 16

// keepTime is how long a connection stays for the next message. An agreement takes some of them each
// way, and connecting takes longer than all else.
const keepTime = 50 * time.Millisecond

// sendBallot sends a message of an agreement. A rank counted as lost may live: it must hear of its
// exclusion.
func (c *control) sendBallot(to levels.Rank, n note) {
	b := n.bytes()
	if slices.Contains(c.job.CutOff(), to) || c.job.Send(to, ballotControl, b) != nil {
		c.sendDirect(to, b)
	}
}

// sendDirect sends a message over a connection of its own to its rank, after those before it. A
// silent host delays only the messages to it. A message still waiting, or sent a moment ago, is
// not sent again.
func (c *control) sendDirect(to levels.Rank, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		return
	}
	q := c.ballots[to]
	if q == nil {
		q = &ballotQueue{more: make(chan struct{}, 1)}
		c.ballots[to] = q
	}
	if q.has(b) {
		return
	}
	if len(q.waiting) == mostQueued {
		q.waiting = q.waiting[1:]
	}
	q.waiting = append(q.waiting, b)
	q.signal()
	if !q.busy {
		q.busy = true
		c.background.Go(func() { c.sendQueued(to, q) })
	}
}

// sendQueued sends the messages to one rank until there are none, over one connection as long as
// they follow each other.
func (c *control) sendQueued(to levels.Rank, q *ballotQueue) {
	var line net.Conn
	for message := c.nextQueued(q, false); message != nil; message = c.nextQueued(q, line != nil) {
		e := directNote{to, ballotControl, message}
		if line != nil {
			if writeDirect(line, e) == nil {
				continue
			}
			line.Close()
		}
		var err error
		if line, err = c.deliverBy(c.job.Recall, e); err != nil { // it may be tried again at once
			c.mu.Lock()
			q.sent = q.sent[:len(q.sent)-1]
			c.mu.Unlock()
		}
	}
	if line != nil {
		line.Close()
	}
}

// nextQueued takes the message with the longest wait; nil: there is none, and the sender ends. With
// wait it waits keepTime for the next one.
func (c *control) nextQueued(q *ballotQueue, wait bool) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait && len(q.waiting) == 0 {
		q.drain() // the signal of a message taken already
		c.mu.Unlock()
		select {
		case <-q.more:
		case <-time.After(keepTime):
		}
		c.mu.Lock()
	}
	if q.busy = len(q.waiting) > 0 && !c.ended.Load(); !q.busy {
		return nil
	}
	message := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.sent = append(q.sent, sentBallot{message, time.Now()})
	q.sent = q.sent[max(0, len(q.sent)-mostQueued):]
	return message
}
