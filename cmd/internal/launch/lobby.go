package launch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels/join/launcher"
	"github.com/tierflow/tierflow/levels/ranges"
)

// lobby is the launcher's view of a job with restarts. Ranks go by the number of their first
// process.
type lobby struct {
	members  map[int]bool          // with a process in the job, or let in
	waiting  []int                 // with a process waiting to join, the first in front
	restarts int                   // so far
	lives    map[int]int           // of the newest process of a rank: the restarts with its own; none: it is one of the first
	delays   map[int]time.Duration // before the next restart of one never let in
	fallen   map[int]*ending       // of members, as long as no process in their place was let in
	due      []restart
	wake     <-chan time.Time // when the next of due is
	runs     bool             // a process has joined: those started from now on come late
	over     bool             // nobody is started or let in any more
	look     <-chan time.Time // when waiting processes are reported; nil: none wait
	since    time.Time        // since then one or the other waits
}

// restart is a process to be started.
type restart struct {
	conn *conn
	rank int
	at   time.Time
}

// A process that was never let in is started again after a pause, doubled each time.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
)

// nextPause is the pause after the last one; 0: there was none.
func nextPause(last time.Duration) time.Duration { return min(max(firstPause, 2*last), mostPause) }

// openLobby lets all first processes be in the job.
func (j *job) openLobby() {
	j.lobby = lobby{members: map[int]bool{}, delays: map[int]time.Duration{}, lives: map[int]int{}, fallen: map[int]*ending{}}
	for _, c := range j.conns {
		for _, rank := range c.ranks {
			j.lobby.members[rank] = true
		}
	}
}

// restarts reports whether processes take the place of others.
func (j *job) restarts() bool { return j.opts.MaxRestarts > 0 }

// replace notes the end of a process. Unless the program has done its work another process takes
// its place, as long as a living rank can let it in.
func (j *job) replace(c *conn, e *exited) {
	l := &j.lobby
	member, waited := l.members[e.Rank], len(l.waiting)
	delete(l.members, e.Rank)
	j.outcasts.drop(e.Rank)
	l.waiting = slices.DeleteFunc(l.waiting, func(r int) bool { return r == e.Rank })
	j.tell(everyRank, launcher.LobbyNote{Ended: &e.Rank})
	switch {
	case e.Status == 0 || e.aborted():
		j.noteEnding(c, e)
		j.closeLobby()
	case l.over && !member:
		e.Status = 0 // nobody has taken it in, and nobody missed it
		j.noteEnding(c, e)
	case j.failure == nil && !l.over && l.restarts < j.opts.MaxRestarts && (len(l.members) > 0 || !l.runs) && !c.done:
		l.restarts++
		j.plan(c, e, member && l.runs)
	default:
		j.noteEnding(c, e)
	}
	if len(l.members) == 0 && l.runs && !l.over && j.failure == nil {
		j.failRank(e) // nobody is left to let the waiting ones in
	}
	if len(l.waiting) != waited {
		j.tellWaiting()
	}
}

// plan lets a process be started in the place of another one.
func (j *job) plan(c *conn, e *exited, member bool) {
	l := &j.lobby
	pause := time.Duration(0)
	if member {
		l.fallen[e.Rank] = j.newEnding(c, e)
	} else {
		pause = nextPause(l.delays[e.Rank])
	}
	l.delays[e.Rank] = pause
	l.due = append(l.due, restart{c, e.Rank, time.Now().Add(pause)})
	j.note(fmt.Sprintf("%s; restart %d of %d", endText(e.Rank, c.host, e.how()), l.restarts, j.opts.MaxRestarts))
	j.startDue()
}

// startDue starts the processes due by now.
func (j *job) startDue() {
	l := &j.lobby
	l.wake = nil
	if l.over {
		return
	}
	var later []restart
	for _, r := range l.due {
		if time.Until(r.at) <= 0 {
			l.lives[r.rank] = l.restarts
			r.conn.send(frame{Restart: &restartOrder{Rank: r.rank, Restarts: l.restarts, First: !l.runs}})
			if !l.runs {
				l.members[r.rank] = true
			}
		} else {
			later = append(later, r)
		}
	}
	l.due = later
	if len(later) > 0 {
		next := slices.MinFunc(later, func(a, b restart) int { return a.at.Compare(b.at) })
		l.wake = time.After(time.Until(next.at))
	}
}

// hearNote handles the word of a process.
func (j *job) hearNote(c *conn, n *note) {
	l := &j.lobby
	var said launcher.LobbyNote
	if !slices.Contains(c.ranks, n.Rank) || json.Unmarshal(n.Line, &said) != nil || !j.restarts() {
		j.fail(statusLauncher, c.errorf("what rank %d says to the launcher makes no sense: %.80q", n.Rank, n.Line))
		return
	}
	switch {
	case said.In:
		if !l.runs {
			l.runs = true
			j.tell(everyRank, launcher.LobbyNote{Runs: true})
		}
		j.tell(n.Rank, j.waitingNote()) // the others know
		return
	case len(said.LeftOut) > 0:
		for _, life := range said.LeftOut {
			j.castOut(life)
		}
		return
	case said.Wait && l.over:
		j.tell(n.Rank, launcher.LobbyNote{Over: true})
		return
	case said.Wait:
		if l.members[n.Rank] { // it could not join its hosts, or not stay: they need not wait for it
			j.tell(everyRank, launcher.LobbyNote{Ended: &n.Rank})
		}
		delete(l.members, n.Rank)
		j.outcasts.drop(n.Rank)
		if !slices.Contains(l.waiting, n.Rank) {
			l.waiting = append(l.waiting, n.Rank)
		}
		if l.look == nil {
			l.look, l.since = time.After(waitTime), time.Now()
		}
		if len(l.members) == 0 && j.failure == nil {
			j.fail(statusLauncher, fmt.Errorf("all processes wait to join, and none is in the job: %s", j.progressText()))
		}
	default:
		for _, p := range said.Invite {
			if i := slices.Index(l.waiting, p.Slot); i >= 0 {
				l.waiting = slices.Delete(l.waiting, i, i+1)
				l.members[p.Slot] = true
				l.delays[p.Slot] = 0
				delete(l.fallen, p.Slot)
				j.tell(p.Slot, launcher.LobbyNote{Invite: []launcher.Place{p}})
			} else { // it has ended meanwhile
				j.tell(n.Rank, launcher.LobbyNote{Ended: &p.Slot})
			}
		}
	}
	j.tellWaiting()
}

// waitTime is how long processes wait to be let in until that is reported; then the time is doubled each time.
const waitTime = 30 * time.Second

// reportWaiting says which processes wait, and for whom.
func (j *job) reportWaiting() {
	l := &j.lobby
	if l.look = nil; len(l.waiting) == 0 {
		return
	}
	long := time.Since(l.since)
	l.look = time.After(long)
	j.note(waitingText(l.waiting, slices.Collect(maps.Keys(l.members)), long))
}

// waitingText says that ranks have waited to be let in, and by whom.
func waitingText(waiting, members []int, long time.Duration) string {
	all := func(ranks []int) string { return ranges.Text(slices.Sorted(slices.Values(ranks))) }
	return fmt.Sprintf("waiting to be let in, for up to %.0f s: ranks %s; that takes a Turn or Grow of all of ranks %s, and one that hangs or is stopped holds it up", long.Seconds(), all(waiting), all(members))
}

// tellWaiting tells all about a change of the waiting ones.
func (j *job) tellWaiting() { j.tell(everyRank, j.waitingNote()) }

// waitingNote lists the waiting ones.
func (j *job) waitingNote() launcher.LobbyNote {
	waiting := []launcher.Newcomer{}
	for _, rank := range j.lobby.waiting {
		waiting = append(waiting, launcher.Newcomer{Slot: rank, Beside: j.connOf(rank).ranks})
	}
	return launcher.LobbyNote{Waiting: &waiting}
}

// tell says something to the process of a rank, or to all.
func (j *job) tell(rank int, said launcher.LobbyNote) {
	line, _ := json.Marshal(said) // of plain fields: can't fail
	f := frame{Tell: &note{Rank: rank, Line: line}}
	if rank == everyRank {
		j.sendAll(f)
	} else {
		j.connOf(rank).send(f)
	}
}

// leaveLobby strikes off the ranks of a lost agent: nobody starts them again.
func (j *job) leaveLobby(c *conn) {
	l := &j.lobby
	l.due = slices.DeleteFunc(l.due, func(r restart) bool { return r.conn == c })
	l.waiting = slices.DeleteFunc(l.waiting, func(r int) bool { return slices.Contains(c.ranks, r) })
	for _, rank := range c.ranks {
		if l.members[rank] {
			delete(l.members, rank)
			j.tell(everyRank, launcher.LobbyNote{Ended: &rank})
		}
	}
	j.tellWaiting()
}

// closeLobby lets nobody be started or let in any more.
func (j *job) closeLobby() {
	l := &j.lobby
	if l.over || !j.restarts() {
		return
	}
	l.over, l.wake, l.look = true, nil, nil
	for _, rank := range l.waiting {
		j.tell(rank, launcher.LobbyNote{Over: true})
	}
	l.due, l.waiting = nil, nil
	j.endMoves()
	j.sendAll(frame{Last: true})
}
