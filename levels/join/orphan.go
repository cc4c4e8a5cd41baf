package join

import (
	"errors"
	"os"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/process"
)

// A connection ends with the processes that hold it. A child made by fork without exec holds all of its
// parent's, as those of Python's multiprocessing do: the connections of a dead rank then stay, and its
// listeners take more. So the process of each neighbour on this machine is watched itself, and looked at
// before it is dialled again.

// orphanTime is how long after a rank's process its connections may end: until then they tell more.
const orphanTime = 500 * time.Millisecond

// errProcessEnded is why no connection to a rank is tried.
var errProcessEnded = errors.New("its process has ended")

// watchProcess ends an edge if the neighbour's process has ended and the connection stays. It returns
// when the process has ended, can't be seen from here, or the job is left.
func (j *Job) watchProcess(e *edge) {
	p := j.Peers[e.peer]
	if !j.sees(p) || !process.AwaitEnd(j.life, p.PID, p.Born, p.Space) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.orphaned = true
	_ = e.conn.SetReadDeadline(time.Now().Add(orphanTime)) // it may have ended
}

// sees reports whether this rank can look at another one's process: it is another one, of the same machine.
func (j *Job) sees(p *Peer) bool {
	me := j.Peers[j.Rank]
	return p != nil && p.Born != 0 && p.Host.Boot == me.Host.Boot && (p.PID != os.Getpid() || p.Space != me.Space)
}

// hasEnded reports whether the process of a rank has ended for sure.
func (j *Job) hasEnded(r levels.Rank) bool {
	ended, _ := j.process(r)
	return ended
}

// IsStopped reports whether the process of another rank is stopped for sure, by a signal or a debugger. Only ranks of
// the same machine see it.
func (j *Job) IsStopped(r levels.Rank) bool {
	ended, stopped := j.process(r)
	return stopped && !ended
}

// process reports what is sure of the process of a rank.
func (j *Job) process(r levels.Rank) (ended, stopped bool) {
	p := j.Peers[r]
	if !j.sees(p) {
		return false, false
	}
	ended, stopped, known := process.Look(p.PID, p.Born, p.Space)
	return known && ended, known && stopped
}
