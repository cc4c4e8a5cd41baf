package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
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
	wg     sync.WaitGroup // the goroutines of conns
	alive  int            // conns that have not gone

	rendezvous string
	released   bool // ranks may run
	finished   bool // all ranks have ended and all output is here

	failure    error // the first
	status     int
	endings    map[int]*ending  // of ranks, by rank
	first      *ending          // the one that is the failure; nil: the failure is no rank's
	sparing    bool             // the rank with which it began has not got a signal yet
	force      <-chan time.Time // the next, harder step of ending the job
	killed     bool
	interrupts int
	asked      bool // the ranks, what they are in
	lobby      lobby
}

func newJob(opts Options, stdin io.Reader, stdout, stderr io.Writer) *job {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return &job{
		opts:   opts,
		secret: hex.EncodeToString(secret),
		out:    &printer{stamped: opts.Timestamps, dest: [streams]io.Writer{streamOut: stdout, streamErr: stderr}},
		input:  supply{from: stdin, to: map[*conn][]int{}, owed: map[int]int{}},
		events: make(chan event), endings: map[int]*ending{},
	}
}

// dialAll starts an agent on every node that has ranks.
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
	if err == nil {
		j.logs, err = openLogs(j.opts.LogDir, j.size)
	}
	if err != nil {
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
		s := &start{
			Version: protocolVersion, Secret: j.secret, Ranks: ranks, Size: j.size,
			Dir: j.opts.Dir, Program: j.opts.Program,
			Env: j.opts.passedEnv(), Inherit: !j.opts.isLocal(),
			Readers: j.input.plan(c, ranks, readers), Restarts: j.restarts(),
			Listen: ranks[0] == 0, Loopback: j.opts.isLocal() || used == 1, Bind: j.opts.Bind, TraceEvery: j.opts.TraceEvery,
		}
		playsAll := j.opts.isLocal() && used > 1
		if playsAll && s.Bind == "" {
			s.Bind = bindNone // no agent knows of the other hosts' ranks
		}
		if j.opts.NodeNames || playsAll {
			s.Node = c.host
		}
		c.send(frame{Start: s})
	}
	j.openLobby()
}

// loop serves the job until every agent is gone. It never waits for anything else.
func (j *job) loop(ctx context.Context) {
	signals := notifyForwarded()
	defer signal.Stop(signals)
	agents := time.NewTimer(j.opts.AgentTimeout)
	defer agents.Stop()
	var timeout <-chan time.Time
	if j.opts.Timeout > 0 {
		timer := time.NewTimer(j.opts.Timeout)
		defer timer.Stop()
		timeout = timer.C
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
		case s := <-signals:
			j.forward(s)
		case <-j.force:
			j.endHarder()
		case <-j.lobby.wake:
			j.startDue()
		case <-agents.C:
			j.checkAgents()
		case <-timeout:
			timeout = j.endInTime()
		case <-done:
			done = nil
			j.fail(statusLauncher, fmt.Errorf("the job was ended: %w: %s", context.Cause(ctx), j.progressText()))
		}
	}
	j.wg.Wait()
	if err := j.logs.close(); err != nil && j.failure == nil {
		j.failure, j.status = err, statusLauncher
	}
}

func (j *job) handle(e event) {
	f := e.frame
	switch {
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

// handleExit notes the end of a rank, which fails the job unless its status is 0.
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

// dropAgent strikes an agent off. An agent that ended before its ranks may have left
// them: those within reach are killed.
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
