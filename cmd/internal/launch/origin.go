package launch

import (
	"cmp"
	"fmt"
	"syscall"
	"time"
)

// newsGrace is the time for news of further failures after the first one, if it blames a rank that
// has not ended. That rank may blame another one in turn, for which a signal would be too early. It is a
// variable for a test of that.
var newsGrace = 200 * time.Millisecond

// originGrace is the time for the rank at the origin of a failure to end after another one ended
// because of it. It may wait in Close for the others, before it can say why it ends.
const originGrace = time.Second

// ending is how a rank ended.
type ending struct {
	*exited
	conn *conn
	ours bool // by a signal of the launcher's

	after syscall.Signal // forwarded before it ended; 0: none
	borne bool           // the job went on without it
	nth   int            // processes of the rank before this one
}

func (j *job) newEnding(c *conn, e *exited) *ending {
	sig := syscall.Signal(e.Signal)
	ours := sig != 0 && j.failure != nil && (j.killed || nameOf(sig) != "" && sig != syscall.SIGKILL)
	one := &ending{exited: e, conn: c, ours: ours, after: j.signalled}
	if c != nil {
		one.nth = c.starts[e.Rank] - 1
	}
	return one
}

// endingOf returns how a rank ended; nil: it runs. A process that failed in the job counts, rather than the one in its
// place that was not let in.
func (j *job) endingOf(rank int) *ending {
	if e := j.lobby.fallen[rank]; e != nil {
		return e
	}
	return j.endings[rank]
}

// noteEnding notes the end of a rank.
func (j *job) noteEnding(c *conn, e *exited) {
	if j.endings[e.Rank] == nil { // an agent that lies would repeat it
		one := j.newEnding(c, e)
		one.borne = e.Status != 0 && j.failure == nil && j.bears(1) && !e.aborted()
		j.endings[e.Rank] = one
		if one.borne && j.ending == 0 && c != nil {
			j.note(fmt.Sprintf("%s; %d of %d ranks are left, --min %d", endText(e.Rank, c.host, e.how()), j.left(), j.size, j.opts.Min))
		}
	}
	switch {
	case j.failure == nil && (e.aborted() || e.Status != 0 && !j.bears(0)):
		j.failRank(e)
	case j.sparing && j.endingOf(j.origin()) != nil:
		j.terminate()
	}
}

// bears reports whether the job goes on without the failed ranks, and so many more.
func (j *job) bears(more int) bool { return j.opts.Min > 0 && j.left()-more >= j.opts.Min }

// left is the number of ranks that have not failed.
func (j *job) left() int {
	n := j.size
	for _, e := range j.endings {
		if e.Status != 0 {
			n--
		}
	}
	return n
}

// failRank fails the job because of the first failed rank. The others are ended at once, unless
// it blames one of them: that one gets time to end by itself. So do all in an interrupted job.
func (j *job) failRank(e *exited) {
	if j.ending != 0 {
		j.first = cmp.Or(j.first, j.endings[e.Rank])
		return
	}
	j.first = j.endings[e.Rank]
	j.failure, j.status = fmt.Errorf("rank %d: exit status %d", e.Rank, e.Status), cmp.Or(e.Status, 1) // until all is known
	if j.endingOf(j.origin()) != nil {
		j.terminate()
		return
	}
	j.sparing = true
	j.force = time.After(newsGrace)
}

// spareOrigin ends all ranks but the one it began with, which may wait for them in Close.
func (j *job) spareOrigin() {
	origin := j.origin()
	j.sendAll(frame{Signal: nameOf(syscall.SIGTERM), Spare: &origin})
	j.spared = true
	j.force = time.After(originGrace)
}

// origin is the rank at the beginning of the failure. It follows the blame from the first failed
// rank.
func (j *job) origin() int {
	at := j.first.Rank
	for range j.size { // ranks may blame each other
		e := j.endingOf(at)
		if e == nil || e.Blame == nil || e.Blame.Rank < 0 || int(e.Blame.Rank) >= j.size || e.Signal != 0 && !e.ours {
			break // who was killed hasn't ended because of what it met before
		}
		if next := j.endings[int(e.Blame.Rank)]; next != nil && next.borne {
			break
		}
		at = int(e.Blame.Rank)
	}
	if e := j.findCrash(); e != nil && j.first.Blame == nil {
		return e.Rank
	}
	return at
}

// findCrash returns a rank that has died of a signal not sent by the launcher, if the first failed
// rank has exited; nil: there is none. Programs without package planner blame nobody. The first
// rank may have exited because it had lost the crashed one, and the news of two processes cross.
func (j *job) findCrash() *ending {
	for _, c := range j.conns {
		for _, rank := range c.ranks {
			if e := j.endings[rank]; e != nil && e.Signal != 0 && !e.ours && !e.borne && j.first.Signal == 0 {
				return e
			}
		}
	}
	return nil
}

// rankError is the failure of the job, told by its origin.
func (j *job) rankError() *RankError {
	origin := j.origin()
	err := &RankError{Rank: origin, Status: cmp.Or(j.first.Status, 1), First: j.first.Rank, how: "had not ended"}
	e := j.endingOf(origin)
	for _, c := range j.conns {
		if source := c.sources[origin]; source != nil {
			err.Host, err.Tail = c.host, source.tail
			if e != nil {
				err.Tail = source.lastLines(e.nth)
			}
		}
	}
	if blame := j.first.Blame; blame != nil {
		err.nobody = blame.Rank < 0
		if e == nil || e.ours || e.Status == 0 || err.nobody {
			err.Why = blame.Why // its status doesn't say it
		}
	}
	if e == nil || e.ours {
		return err
	}
	if e.Blame != nil && e.Signal == 0 { // else it met that before, or nothing of it is to be said
		err.Why = e.Blame.Why
	}
	if e.Status != 0 {
		err.Status = e.Status
	}
	err.alone = e.Status != 0 && err.Why == ""
	err.Signal, err.how = e.Text, e.how()
	return err
}
