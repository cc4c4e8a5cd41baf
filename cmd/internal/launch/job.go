package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
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

	failure     error // the first
	status      int
	endings     map[int]*ending  // of ranks, by rank
	first       *ending          // the failure's; nil: the failure is no rank's
	sparing     bool             // the rank it began with has not got a signal yet
	spared      bool             // it alone has not
	force       <-chan time.Time // the next, harder step of ending the job
	killed      bool
	signalled   syscall.Signal   // the last one forwarded that ends programs; 0: none
	ending      syscall.Signal   // the first of those that end the job, see isEnding; 0: none
	interrupted time.Time        // when it came
	patience    <-chan time.Time // since then: when to say who is waited for, and when to kill them
	told        bool             // that was said
	asked       bool             // the ranks, about their calls
	last        <-chan time.Time // when to say that one rank runs on alone; set once
	lobby       lobby
	outcasts    outcasts
	moves       moves

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
	if text := crowdText(j.size, runtime.NumCPU()); j.opts.isLocal() && text != "" {
		j.note(text)
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
		case <-j.last:
			j.tellLast()
		case <-j.lobby.wake:
			j.startDue()
		case <-j.lobby.look:
			j.reportWaiting()
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
	if j.last == nil && j.size > 1 && len(j.endings) == j.size-1 {
		j.last = j.after(lastTime)
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
			j.noteEnding(e.conn, lost(rank, "its agent has ended"))
		}
		j.endAgent(e.conn)
		return
	}
	j.fail(statusLauncher, e.err)
}

// lost is the end of a rank whose agent is gone: the system kills it with its agent.
func lost(rank int, why string) *exited {
	return &exited{Rank: rank, Signal: int(syscall.SIGKILL), Status: statusSignal + int(syscall.SIGKILL), Text: why}
}

// sendAll sends a frame to all agents.
func (j *job) sendAll(f frame) {
	for _, c := range j.conns {
		c.send(f)
	}
}

// note prints a line of the launcher itself.
func (j *job) note(line string) {
	_ = j.out.print(&source{label: "[tierflow run] "}, streamErr, []byte(line+"\n"))
}

// connOf returns the agent of a rank.
func (j *job) connOf(rank int) *conn {
	i := slices.IndexFunc(j.conns, func(c *conn) bool { return slices.Contains(c.ranks, rank) })
	return j.conns[i]
}
