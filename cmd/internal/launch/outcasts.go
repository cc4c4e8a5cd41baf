package launch

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// The job may go on without a process that runs: one that hangs, or is stopped. It has noticeTime to hear of it and to wait to
// join again. Then it gets SIGQUIT, on which Go programs print their stacks and end, and after quitTime SIGKILL. So another
// process can take its place.
const (
	noticeTime = 10 * time.Second
	quitTime   = 5 * time.Second
)

// outcasts are the processes left out by the others that have not noticed yet. The zero value has none.
type outcasts struct {
	all  []outcast
	wake <-chan time.Time // when the first one is due
}

type outcast struct {
	rank int
	due  time.Time // of the next signal
	quit bool      // it has got SIGQUIT
}

// drop forgets one: it has ended, or waits to join.
func (o *outcasts) drop(rank int) {
	o.all = slices.DeleteFunc(o.all, func(c outcast) bool { return c.rank == rank })
}

// castOut takes in that the others have left a process out. News of an earlier one in its place come too late.
func (j *job) castOut(life launcher.Life) {
	l, rank := &j.lobby, life.Slot
	known := slices.ContainsFunc(j.outcasts.all, func(c outcast) bool { return c.rank == rank })
	if known || !l.members[rank] || l.lives[rank] != life.Restarts {
		return
	}
	delete(l.members, rank) // nobody misses it if it ends
	j.outcasts.all = append(j.outcasts.all, outcast{rank: rank, due: time.Now().Add(noticeTime)})
	j.note(fmt.Sprintf("the others go on without rank %d on host %s, which hangs or is stopped: if it doesn't notice it gets SIGQUIT after %v, and is killed %v later",
		rank, j.connOf(rank).host, noticeTime, quitTime))
	j.awaitOutcasts()
}

// awaitOutcasts sets the time to wake up.
func (j *job) awaitOutcasts() {
	if o := &j.outcasts; len(o.all) > 0 {
		o.wake = j.after(time.Until(o.first()))
	}
}

// first is when the first one is due.
func (o *outcasts) first() time.Time {
	return slices.MinFunc(o.all, func(a, b outcast) int { return a.due.Compare(b.due) }).due
}

// endOutcasts sends their signals to those that are due.
func (j *job) endOutcasts() {
	o := &j.outcasts
	o.wake = nil
	if len(o.all) == 0 {
		return
	}
	due := o.first()
	for i := range o.all {
		c := &o.all[i]
		if c.due.After(due) {
			continue
		}
		sig := syscall.SIGQUIT
		if c.quit {
			sig = syscall.SIGKILL
		}
		j.connOf(c.rank).send(frame{Signal: nameOf(sig), Only: &c.rank})
		c.quit, c.due = true, due.Add(quitTime)
	}
	j.awaitOutcasts()
}
