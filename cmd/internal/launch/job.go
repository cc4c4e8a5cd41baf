package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// job is the state of one Run. Only its loop touches it; readers of agents' output
// share out and events.
type job struct {
	opts   Options
	secret string
	size   int
	out    *printer
	logs   logs
	input  supply

	conns  []*conn
	events chan event
	// signals come from before the first agent is started: none is lost, nor ends the launcher alone.
	signals chan os.Signal
	wg      sync.WaitGroup // the goroutines of conns
	alive   int            // conns not gone yet
	several bool           // hosts with ranks

	rendezvous string
	released   bool // ranks may run
	finished   bool // all ranks have ended and all output is here

	failure   error // the first
	status    int
	endings   map[int]*ending  // of ranks, by rank
	first     *ending          // the failure's; nil: the failure is no rank's
	sparing   bool             // the rank it began with has not got a signal yet
	spared    bool             // it alone has not
	force     <-chan time.Time // the next, harder step of ending the job
	killed    bool
	signalled syscall.Signal   // the last one forwarded that ends programs; 0: none
	ending    syscall.Signal   // the first of those that end the job, see isEnding; 0: none
	patience  <-chan time.Time // since then: when to say who is waited for, and when to kill them
	told      bool             // that was said
	asked     bool             // the ranks, about their calls
	lobby     lobby
	outcasts  outcasts
	moves     moves

	after func(time.Duration) <-chan time.Time // the clock of Options.Timeout, of the ranks' answers and of outcasts
}

func newJob(opts Options, stdin io.Reader, stdout, stderr io.Writer) *job {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	out := &printer{stamped: opts.Timestamps, dest: [streams]io.Writer{streamOut: stdout, streamErr: stderr}}
	for i, to := range out.dest {
		f, isFile := to.(*os.File)
		out.terminal[i] = isFile && term.IsTerminal(int(f.Fd()))
	}
	return &job{
		opts:   opts,
		secret: hex.EncodeToString(secret),
		out:    out,
		input:  supply{from: stdin, to: map[*conn][]int{}, owed: map[int]int{}},
		events: make(chan event), endings: map[int]*ending{},
		after: time.After,
	}
}

// dialAll starts an agent on every node with ranks.
func (j *job) dialAll(nodes []node, placed [][]int) {
	used := 0
	for _, ranks := range placed {
		j.size += len(ranks)
		if len(ranks) > 0 {
			used++
		}
	}
	readers, err := j.opts.readers(j.size)
	if err == nil && j.opts.Min > j.size {
		err = fmt.Errorf("at least %d ranks of %d; allowed are 0 to %d", j.opts.Min, j.size, j.size)
	}
	if err != nil {
		j.fail(statusOptions, err)
		return
	}
	if j.logs, err = openLogs(j.opts.LogDir, j.size); err != nil {
		j.fail(statusLauncher, err)
		return
	}
	for i, ranks := range placed {
		if len(ranks) == 0 {
			continue
		}
		c, err := dial(&j.opts, nodes[i].host, ranks, j.logs, j.out, j.events, &j.wg)
		if err != nil {
			j.fail(statusLauncher, err)
			return
		}
		j.conns = append(j.conns, c)
		j.alive++
		j.several = used > 1
		s := j.startOf(c)
		s.Readers, s.Listen, s.Loopback = j.input.plan(c, ranks, readers), ranks[0] == 0, j.opts.isLocal() || used == 1
		c.send(frame{Start: s})
	}
	j.openLobby()
}

// startOf returns what any agent is told first.
func (j *job) startOf(c *conn) *start {
	s := &start{
		Version: protocolVersion, Secret: j.secret, Ranks: c.ranks, Size: j.size,
		Dir: j.opts.Dir, Program: j.opts.Program,
		Env: j.opts.passedEnv(), Inherit: !j.opts.isLocal(),
		Restarts: j.restarts(), Bind: j.opts.Bind, TraceEvery: j.opts.TraceEvery,
	}
	playsAll := j.opts.isLocal() && j.several
	if playsAll && s.Bind == "" {
		s.Bind = bindNone // no agent knows of the other hosts' ranks
	}
	if j.opts.NodeNames || playsAll {
		s.Node = c.host
	}
	return s
}

// loop serves the job until every agent is gone. It never waits for anything else.
func (j *job) loop(ctx context.Context) {
	defer signal.Stop(j.signals)
	agents := time.NewTimer(j.opts.AgentTimeout)
	defer agents.Stop()
	var timeout <-chan time.Time
	if j.opts.Timeout > 0 {
		timeout = j.after(j.opts.Timeout)
	}
	done := ctx.Done()
	defer j.input.stop()
	for j.alive > 0 {
		if j.failure != nil {
			j.closeLobby()
		}
		select {
		case piece, ok := <-j.input.next():
			j.input.pass(piece, ok)
		case e := <-j.events:
			j.handle(e)
		case s := <-j.signals:
			j.forward(s)
		case <-j.force:
			j.endHarder()
		case <-j.patience:
			j.loseGrace()
		case <-j.lobby.wake:
			j.startDue()
		case <-j.outcasts.wake:
			j.endOutcasts()
		case <-j.moves.wake:
			j.moveOn()
		case found := <-j.moves.found:
			j.settle(found)
		case <-agents.C:
			j.checkAgents()
		case <-timeout:
			timeout = j.endInTime()
		case <-done:
			done = nil
			j.fail(statusLauncher, fmt.Errorf("the job was ended: %w: %s", context.Cause(ctx), j.progressText()))
		}
	}
	j.endMoves()
	j.wg.Wait()
	if err := j.logs.close(); err != nil && j.failure == nil {
		j.failure, j.status = err, statusLauncher
	}
}

func (j *job) handle(e event) {
	f := e.frame
	o := j.moves.of(e.conn)
	switch {
	case e.conn.missed && e.gone:
		j.alive--
		e.conn.hangUp()
	case e.conn.missed:
	case o != nil && e.gone:
		j.missAgent(o, e.err.Error())
		j.moveOn()
		j.alive--
	case o != nil && e.err != nil:
		j.missAgent(o, e.err.Error())
		j.moveOn()
	case o != nil && f.Refused != nil:
		j.missAgent(o, f.Refused.Reason)
		j.moveOn()
	case o != nil && f.Ready != nil && f.Ready.Version == protocolVersion:
		o.conn.ready = true
		j.takeIn(o)
	case e.gone:
		j.dropAgent(e)
	case e.err != nil:
		j.fail(statusLauncher, e.err)
	case f.Ready != nil:
		j.handleReady(e.conn, f.Ready)
	case f.Refused != nil:
		j.fail(f.Refused.Status, fmt.Errorf("host %s: %s", e.conn.host, f.Refused.Reason))
	case f.Started != nil:
		e.conn.pids[f.Started.Rank] = f.Started.PID
		e.conn.starts[f.Started.Rank]++
	case f.Fed != nil:
		j.input.note(f.Fed)
	case f.Said != nil:
		j.hearNote(e.conn, f.Said)
	case f.Exited != nil:
		j.handleExit(e.conn, f.Exited)
	case f.Done:
		j.endAgent(e.conn)
	default:
		j.fail(statusLauncher, e.conn.errorf("a frame out of turn"))
	}
}

// handleReady releases all agents once the last one is ready.
func (j *job) handleReady(c *conn, r *ready) {
	if r.Version != protocolVersion {
		j.fail(statusLauncher, c.errorf("speaks protocol %d, this launcher %d", r.Version, protocolVersion))
		return
	}
	c.ready = true
	if r.Rendezvous != "" {
		j.rendezvous = r.Rendezvous
	}
	if j.failure != nil || slices.ContainsFunc(j.conns, func(c *conn) bool { return !c.ready }) {
		return
	}
	j.released = true
	j.sendAll(frame{Release: &release{Rendezvous: j.rendezvous}})
	j.input.start()
}

// handleExit notes the end of a rank. It fails the job unless the status is 0.
func (j *job) handleExit(c *conn, e *exited) {
	delete(c.pids, e.Rank)
	if j.restarts() {
		j.replace(c, e)
	} else {
		j.noteEnding(c, e)
	}
}

// endAgent lets an agent end. After the last one's ranks nothing can fail any more,
// and no agent may keep the launcher.
func (j *job) endAgent(c *conn) {
	c.done = true
	c.hangUp()
	if !slices.ContainsFunc(j.conns, func(c *conn) bool { return !c.done }) {
		j.finished = true
		j.hangUpAll()
	}
}

// dropAgent strikes an agent off. An agent gone before its ranks may have left them: those within
// reach are killed.
func (j *job) dropAgent(e event) {
	j.alive--
	e.conn.hangUp()
	if e.conn.done {
		return
	}
	if j.opts.isLocal() {
		for _, pid := range e.conn.pids {
			signalGroup(pid, syscall.SIGKILL)
		}
	}
	if j.restarts() {
		j.leaveLobby(e.conn)
	}
	if j.canMove() {
		j.moveFrom(e.conn)
		return
	}
	if j.released && j.failure == nil && j.bears(len(e.conn.pids)) {
		for rank := range e.conn.pids {
			j.noteEnding(e.conn, &exited{Rank: rank, Signal: int(syscall.SIGKILL), Status: statusSignal + int(syscall.SIGKILL), Text: "its agent has ended"})
		}
		j.endAgent(e.conn)
		return
	}
	j.fail(statusLauncher, e.err)
}

// sendAll sends a frame to all agents.
func (j *job) sendAll(f frame) {
	for _, c := range j.conns {
		c.send(f)
	}
}

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
	case e.Status == 0:
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
		pause = min(max(firstPause, 2*l.delays[e.Rank]), mostPause)
	}
	l.delays[e.Rank] = pause
	l.due = append(l.due, restart{c, e.Rank, time.Now().Add(pause)})
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != 0 {
		how = "signal: " + e.Text
	}
	j.note(fmt.Sprintf("rank %d on host %s has ended (%s); restart %d of %d", e.Rank, c.host, how, l.restarts, j.opts.MaxRestarts))
	j.startDue()
}

// note prints a line of the launcher itself.
func (j *job) note(line string) {
	_ = j.out.print(&source{label: "[tierflow run] "}, streamErr, []byte(line+"\n"))
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

// connOf returns the agent of a rank.
func (j *job) connOf(rank int) *conn {
	i := slices.IndexFunc(j.conns, func(c *conn) bool { return slices.Contains(c.ranks, rank) })
	return j.conns[i]
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
	l.over, l.wake = true, nil
	for _, rank := range l.waiting {
		j.tell(rank, launcher.LobbyNote{Over: true})
	}
	l.due, l.waiting = nil, nil
	j.endMoves()
	j.sendAll(frame{Last: true})
}
