package launch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/levels/ranges"
)

// A host may be lost for good. Then its ranks move to others, as far as there are restarts: the launcher asks for the hosts again,
// whose list may have changed since, and starts an agent where slots are free. The job goes on meanwhile, as it does after a process
// has ended. While there is no room, and after an agent that doesn't answer, it asks again after a pause, doubled each time.

// moves are the ranks without a host. The zero value has none.
type moves struct {
	all   []*move
	lost  map[string]bool // hosts whose agents have ended early: they come last
	wake  <-chan time.Time
	found chan hostList // what was asked for; nil: nothing
	stop  context.CancelFunc
}

// move is some ranks on their way.
type move struct {
	ranks []int
	conn  *conn     // to the agent being started for them; nil: none yet
	due   time.Time // to look for hosts, or, with an agent, to give it up
	pause time.Duration
}

// hostList is an answer about the hosts.
type hostList struct {
	nodes []node
	err   error
}

// canMove reports whether ranks of a lost host can go on elsewhere: some of the others live, to let them in, and the hosts can be
// asked for.
func (j *job) canMove() bool {
	l := &j.lobby
	return j.restarts() && j.opts.hostsMayChange() && l.runs && !l.over && j.failure == nil && len(l.members) > 0 && l.restarts < j.opts.MaxRestarts
}

// moveFrom lets the ranks of a lost agent, none of which is in the lobby any more, look for another host.
func (j *job) moveFrom(c *conn) {
	var ranks []int
	for _, rank := range c.ranks {
		if j.endings[rank] == nil {
			ranks = append(ranks, rank)
			j.outcasts.drop(rank)
		}
	}
	j.forget(c)
	j.note(fmt.Sprintf("host %s is lost: ranks %s move to another one", c.host, ranges.Text(ranks)))
	j.moves.all = append(j.moves.all, &move{ranks: ranks, due: time.Now()})
	j.moveOn()
}

// markLost lets a host come last.
func (m *moves) markLost(host string) {
	if m.lost == nil {
		m.lost = map[string]bool{}
	}
	m.lost[host] = true
}

// forget strikes a lost agent off.
func (j *job) forget(c *conn) {
	j.moves.markLost(c.host)
	c.missed = true
	j.conns = slices.DeleteFunc(j.conns, func(o *conn) bool { return o == c })
}

// of returns the move that an agent is started for; nil: none.
func (m *moves) of(c *conn) *move {
	if i := slices.IndexFunc(m.all, func(o *move) bool { return o.conn == c }); c != nil && i >= 0 {
		return m.all[i]
	}
	return nil
}

// moveOn asks for the hosts if a move is due, gives up agents whose time is over, and sets the time to wake up.
func (j *job) moveOn() {
	m := &j.moves
	m.wake = nil
	next := time.Time{}
	for _, o := range m.all {
		if time.Until(o.due) <= 0 {
			switch {
			case o.conn != nil:
				j.missAgent(o, fmt.Sprintf("no answer within %v", j.opts.AgentTimeout))
			case m.found == nil:
				j.askForHosts()
			}
		}
		if (o.conn != nil || m.found == nil) && (next.IsZero() || o.due.Before(next)) {
			next = o.due
		}
	}
	if !next.IsZero() {
		m.wake = time.After(time.Until(next))
	}
}

// askForHosts reads the list of hosts, or runs the command that prints it, without letting the job wait.
func (j *job) askForHosts() {
	ctx, stop := context.WithCancel(context.Background())
	found := make(chan hostList, 1)
	j.moves.found, j.moves.stop = found, stop
	j.wg.Go(func() {
		nodes, err := j.opts.hosts(ctx, nil)
		found <- hostList{nodes, err}
	})
}

// settle starts agents for the moves that are due, where slots are free.
func (j *job) settle(found hostList) {
	m := &j.moves
	m.stop()
	m.found = nil
	if found.err != nil {
		j.note(fmt.Sprintf("asking for hosts: %v", found.err))
	}
	for _, o := range slices.Clone(m.all) {
		if o.conn != nil || time.Until(o.due) > 0 {
			continue
		}
		for _, at := range j.room(found.nodes) {
			if n := min(at.slots, len(o.ranks)); n > 0 {
				j.startElsewhere(at.host, o.ranks[:n], o.pause)
				o.ranks = o.ranks[n:]
			}
		}
		if len(o.ranks) == 0 {
			m.all = slices.DeleteFunc(m.all, func(p *move) bool { return p == o })
			continue
		}
		if o.pause == 0 {
			j.note(fmt.Sprintf("no host has a free slot for ranks %s: the hosts are asked for again, until there is one", ranges.Text(o.ranks)))
		}
		j.postpone(o)
	}
	j.moveOn()
}

// postpone lets a move be tried again after its next pause.
func (j *job) postpone(o *move) {
	o.pause = nextPause(o.pause)
	o.due = time.Now().Add(o.pause)
}

// room returns the free slots of hosts, those of lost ones last.
func (j *job) room(nodes []node) []node {
	var free, last []node
	for _, n := range nodes {
		for _, c := range j.conns {
			if c.host == n.host {
				n.slots -= len(c.ranks)
			}
		}
		switch {
		case n.slots <= 0:
		case j.moves.lost[n.host]:
			last = append(last, n)
		default:
			free = append(free, n)
		}
	}
	return append(free, last...)
}

// startElsewhere starts an agent for ranks whose host was lost.
func (j *job) startElsewhere(host string, ranks []int, pause time.Duration) {
	o := &move{ranks: ranks, pause: pause, due: time.Now().Add(j.opts.AgentTimeout)}
	j.moves.all = append(j.moves.all, o)
	c, err := dial(&j.opts, host, ranks, j.logs, j.out, j.events, &j.wg)
	if err != nil {
		j.moves.markLost(host)
		j.note(err.Error())
		j.postpone(o)
		return
	}
	o.conn = c
	j.conns = append(j.conns, c)
	j.alive++
	s := j.startOf(c)
	s.Late, s.Loopback = true, j.opts.isLocal()
	c.send(frame{Start: s})
}

// missAgent gives up an agent that was started for a move.
func (j *job) missAgent(o *move, why string) {
	j.note(fmt.Sprintf("host %s can't take ranks %s: %s", o.conn.host, ranges.Text(o.ranks), why))
	j.forget(o.conn)
	o.conn.hangUp()
	o.conn.kill()
	o.conn = nil
	j.postpone(o)
}

// takeIn starts the ranks of a move: its agent is ready.
func (j *job) takeIn(o *move) {
	l, c := &j.lobby, o.conn
	j.moves.all = slices.DeleteFunc(j.moves.all, func(p *move) bool { return p == o })
	c.send(frame{Release: &release{Rendezvous: j.rendezvous}})
	for _, rank := range o.ranks {
		if l.restarts == j.opts.MaxRestarts {
			j.noteEnding(c, lost(rank, "its host is lost, and there is no restart left"))
			continue
		}
		l.restarts++
		l.due = append(l.due, restart{c, rank, time.Now()})
		j.note(fmt.Sprintf("rank %d goes on, on host %s; restart %d of %d", rank, c.host, l.restarts, j.opts.MaxRestarts))
	}
	j.startDue()
}

// endMoves gives up all moves: nobody is started any more.
func (j *job) endMoves() {
	m := &j.moves
	for _, o := range m.all {
		if c := o.conn; c != nil {
			j.forget(c)
			c.hangUp()
			c.kill()
		}
	}
	if m.found != nil {
		m.stop()
	}
	m.all, m.found, m.wake = nil, nil, nil
}
