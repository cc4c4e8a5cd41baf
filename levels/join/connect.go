package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// Accept sets the handler of incoming connections of any purpose, over TCP and
// unix sockets; earlier ones are handed to it now. It owns the
// connection, runs on a goroutine per connection and should return soon: Close
// waits for it. A later call replaces the handler; nil keeps connections for
// the next one.
func (j *Job) Accept(handler func(peer levels.Rank, purpose uint8, c net.Conn)) {
	for _, a := range j.acceptWith(handler) {
		handler(a.peer, a.purpose, a.conn)
	}
}

// acceptWith sets the handler and returns earlier connections, for it.
func (j *Job) acceptWith(handler func(peer levels.Rank, purpose uint8, c net.Conn)) (unclaimed []arrival) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.accept = handler; handler != nil {
		unclaimed, j.unclaimed = j.unclaimed, nil
	}
	return unclaimed
}

// admit takes an authenticated connection from the gate.
func (j *Job) admit(g greeting, c net.Conn) {
	j.mu.Lock()
	handler := j.accept
	var child *edge
	switch {
	case j.closing:
		if g.purpose == purposeTree { // it would take this rank for lost
			deliver(c, frame{kind: frameGoodbye, from: j.Rank, to: everyone}.encode(), time.Now().Add(farewellTime))
		}
		c.Close()
		handler = nil
	case g.purpose == purposeTree && errors.Is(j.absent[g.from], ErrLost):
		c.Close() // the others go on without it
		handler = nil
	case g.purpose == purposeTree && j.settled:
		child = newEdge(g.from, c)
		handler = nil
	case g.purpose == purposeProbe:
		handler = j.answerProbe
	case g.purpose == purposeMend:
		j.admitMending(g, c)
		handler = nil
	case g.purpose >= reserved:
		j.admitChild(g, c)
		handler = nil
	case handler == nil && len(j.unclaimed) < maxUnclaimed:
		j.unclaimed = append(j.unclaimed, arrival{g.from, g.purpose, c})
	case handler == nil:
		c.Close()
	}
	j.mu.Unlock()
	if child != nil {
		_ = j.adopt(child) // it looks for another one
	}
	if handler != nil {
		handler(g.from, g.purpose, c)
	}
}

// admitChild keeps a connection of the tree while Join waits for it. The caller
// holds j.mu.
func (j *Job) admitChild(g greeting, c net.Conn) {
	if g.purpose == purposeTree {
		select {
		case j.building <- arrival{g.from, g.purpose, c}:
			return
		default: // more than there are ranks, or the tree stands
		}
	}
	c.Close()
}

// admitMending takes another connection of an edge: the old one is of no use any more. If this rank must dial, the
// connection only says so. j.mu is held.
func (j *Job) admitMending(g greeting, c net.Conn) {
	for _, e := range j.allEdges() {
		if e.peer != g.from || e.isOver() || j.absent[g.from] != nil || !j.settled {
			continue
		}
		if e.dialled {
			e.current().Close()
			break
		}
		select {
		case old := <-e.fresh:
			old.Close()
		default:
		}
		e.fresh <- c // only this function sends, one at a time
		e.current().Close()
		return
	}
	c.Close()
}

// Dial connects to another rank over TCP, authenticated; its Accept handler gets
// the other end with this purpose, 0 to 239. It tries all addresses of the peer,
// each after a short lead of those before: loopback on the same host, then shared
// subnets, then the rest, or the order that the peer's user has given; with an Interfaces filter always from an admitted
// address. Without a deadline in ctx it gives up after 30 s, with a [ReachError]. The
// connection has Go's default keepalive and no limit on unacknowledged data: a
// silent host shows in OnLost.
func (j *Job) Dial(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error) {
	if err := j.dialable(peer, purpose); err != nil {
		return nil, err
	}
	return j.dial(ctx, peer, purpose, false)
}

// Recall is Dial to a lost rank, too: if it still lives it hears that it counts as lost.
func (j *Job) Recall(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error) {
	if err := j.dialable(peer, purpose); err != nil && !errors.Is(err, ErrLost) {
		return nil, err
	}
	return j.dial(ctx, peer, purpose, false)
}

// Gone finds out whether the end of a rank is certain: it has said goodbye, or its host refuses connections at each of its
// addresses. While it can't be reached its end is not certain.
func (j *Job) Gone(ctx context.Context, peer levels.Rank) bool {
	if !j.isOther(peer) {
		return false
	}
	if errors.Is(j.goneError(peer), ErrLeft) {
		return true
	}
	return isRefused(j.knock(ctx, peer))
}

// Lives reports whether a rank can be reached and takes connections. A stopped process does, by its kernel.
func (j *Job) Lives(ctx context.Context, peer levels.Rank) bool {
	if !j.isOther(peer) || j.goneError(peer) != nil {
		return false
	}
	return j.knock(ctx, peer) == nil
}

// Route is an address of a rank for [Job.Dial].
type Route struct {
	Address string     // host:port
	Source  netip.Addr // to dial from; the zero value is the system's choice
	Why     string     // for people
}

// Routes returns the addresses of another rank in Dial's order.
// skipped says why Dial doesn't try the others.
func (j *Job) Routes(peer levels.Rank) (routes []Route, skipped []error) {
	if !j.isOther(peer) {
		return nil, nil
	}
	targets, skipped := j.targets(peer, false)
	for _, t := range targets {
		routes = append(routes, Route{t.address, t.source, t.why})
	}
	return routes, skipped
}

// DialUnix is Dial over a unix socket, to ranks of the same node. Besides the secret
// it wants both ends to belong to one user.
func (j *Job) DialUnix(ctx context.Context, peer levels.Rank, purpose uint8) (*net.UnixConn, error) {
	if err := j.dialable(peer, purpose); err != nil {
		return nil, err
	}
	me, it := j.Peers[j.Rank], j.Peers[peer]
	if me.nodeKey() != it.nodeKey() {
		return nil, &ReachError{From: j.Rank, To: peer, Err: errors.New("a unix socket needs both on one node")}
	}
	if me.Host != it.Host {
		return nil, &ReachError{From: j.Rank, To: peer, Err: fmt.Errorf(
			"both were told to be on node %q, but one is on host %s, the other on %s", it.Node, me.Host.Name, it.Host.Name)}
	}
	c, err := j.dial(ctx, peer, purpose, true)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

func (j *Job) dialable(peer levels.Rank, purpose uint8) error {
	switch {
	case !j.isOther(peer):
		return fmt.Errorf("rank %d dials rank %d; allowed are the others of 0 to %d", j.Rank, peer, j.Size-1)
	case purpose >= reserved:
		return fmt.Errorf("dial rank %d: purpose %d; allowed are 0 to %d", peer, purpose, reserved-1)
	}
	j.mu.Lock()
	closing := j.closing
	j.mu.Unlock()
	if closing {
		return fmt.Errorf("dial rank %d: %w", peer, ErrClosed)
	}
	return j.goneError(peer)
}

// isOther reports whether r is another rank of the job.
func (j *Job) isOther(r levels.Rank) bool { return r >= 0 && int(r) < j.Size && r != j.Rank }

// sameNode reports whether a unix socket leads to r.
func (j *Job) sameNode(r levels.Rank) bool {
	me, it := j.Peers[j.Rank], j.Peers[r]
	return me.Host == it.Host && me.nodeKey() == it.nodeKey()
}

// targets returns the addresses to dial a rank at, in order: its unix socket alone if local. skipped says why the
// others are out of question.
func (j *Job) targets(peer levels.Rank, local bool) (targets []target, skipped []error) {
	it := j.Peers[peer]
	if local {
		return []target{{network: "unix", address: it.Unix}}, nil
	}
	return candidates(j.own, j.filtered, j.Peers[j.Rank].Host == it.Host, it.Offer, it.Addrs, systemSource)
}

func (j *Job) dial(ctx context.Context, peer levels.Rank, purpose uint8, local bool) (net.Conn, error) {
	ctx, cancel := withDefault(ctx, dialTime)
	defer cancel()
	failed := &ReachError{From: j.Rank, To: peer}
	if j.hasEnded(peer) { // a child of it may hold its listeners
		failed.Err = errProcessEnded
		return nil, failed
	}
	targets, skipped := j.targets(peer, local)
	if len(targets) == 0 {
		failed.Err = reasons(append(skipped, errors.New("it offers no other address that isn't loopback")))
		return nil, failed
	}
	hello := func() greeting { return newGreeting(purpose, j.Rank, peer) }
	c, err := race(ctx, targets, credentials{j.key, j.guard}, hello, isDropped)
	if err != nil {
		for _, t := range targets {
			failed.At = append(failed.At, t.address)
		}
		failed.Err = reasons(append(skipped, err))
		return nil, failed
	}
	return c, nil
}
