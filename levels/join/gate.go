package join

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels"
)

const (
	handshakeTime = 5 * time.Second        // for the whole handshake, once accepted
	gateSlots     = 64                     // handshakes at a time
	provenTime    = 30 * time.Second       // for the rest of it, once the secret is proven: the dialer may be starved
	gateYield     = 250 * time.Millisecond // an older one gives way when all slots are taken,
	leastYield    = 20 * time.Millisecond  // a silent one after less, the more of them there are
)

// yieldAfter is how long a silent dialer keeps its slot when all are taken, and so many silent ones have given
// way since they were not: a queue of them goes faster and faster, 4,000 in 2 s. Whoever has said hello keeps
// it for gateYield: a busy host of many ranks takes its time with their proofs.
func yieldAfter(dropped int) time.Duration {
	return max(gateYield*gateSlots/time.Duration(gateSlots+dropped), leastYield)
}

// giveWay returns the visitor to be dropped now, oldest first, when all slots are taken and so many silent ones
// have been dropped; -1: none. Then there may be one after wait.
func giveWay(waiting []*visitor, dropped int, now time.Time) (at int, wait time.Duration) {
	wait = gateYield
	for _, silent := range []bool{true, false} {
		at := slices.IndexFunc(waiting, func(v *visitor) bool { return !v.proven && v.heard != silent })
		if at < 0 {
			continue
		}
		may := gateYield
		if silent {
			may = yieldAfter(dropped)
		}
		left := may - now.Sub(waiting[at].since)
		if left <= 0 {
			return at, 0
		}
		wait = min(wait, left)
	}
	return -1, wait
}

// gate lets authenticated connections in through its listeners, once opened.
//
// A stranger costs at most one slot: a goroutine, a descriptor and a buffer of
// some hundred bytes. When all slots are taken the oldest handshake is dropped
// once it has had the time of [giveWay]: idle connections delay an
// honest rank by a fraction of a second, a full queue of them in the kernel by 2 s. A dialer with
// a proof of the secret is not dropped: it may use the connection already. A source that has had wrong
// secrets waits in its slot for the pause of [refusals].
type gate struct {
	key       []byte
	guard     *guard
	self      levels.Rank
	size      int
	listeners []net.Listener // closed by close
	// admit gets each proven connection, deadlines cleared, on a goroutine of its
	// own; close waits for it.
	admit func(greeting, net.Conn)
	// refused, if any, gets failed handshakes; the greeting is only a claim.
	refused func(greeting, net.Conn, error)
	log     *refusals

	mu      sync.Mutex
	closed  bool
	waiting []*visitor    // in the handshake, oldest first
	dropped int           // silent ones that gave way since half of the slots were free
	freed   chan struct{} // one token when waiting got shorter
	end     chan struct{} // closed when it shuts; nil: it was never opened
	running sync.WaitGroup
}

// visitor is a connection in its handshake.
type visitor struct {
	conn   net.Conn
	since  time.Time
	heard  bool          // it has said hello, with TLS with a ticket of the secret
	proven bool          // it holds the secret
	gone   chan struct{} // closed when it is dropped
}

// drop ends the handshake of a visitor that has its slot. The gate's lock is held.
func (v *visitor) drop() {
	v.conn.Close()
	close(v.gone)
}

// open starts to accept; close waits for its goroutines.
func (g *gate) open() {
	g.freed, g.end = make(chan struct{}, 1), make(chan struct{})
	for _, l := range g.listeners {
		g.running.Go(func() { g.accept(l) })
	}
}

func (g *gate) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: others may close some
			g.log.add("listener "+l.Addr().String(), err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-g.end:
			}
			continue
		}
		v := g.enter(c)
		if v == nil {
			c.Close()
			return
		}
		g.running.Go(func() { g.receive(v) })
	}
}

// enter waits for a slot; nil when the gate was closed.
func (g *gate) enter(c net.Conn) *visitor {
	for {
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return nil
		}
		if len(g.waiting) < gateSlots {
			if len(g.waiting) < gateSlots/2 {
				g.dropped = 0
			}
			v := &visitor{conn: c, since: time.Now(), gone: make(chan struct{})}
			g.waiting = append(g.waiting, v)
			g.mu.Unlock()
			return v
		}
		i, wait := giveWay(g.waiting, g.dropped, time.Now())
		if i >= 0 {
			if !g.waiting[i].heard {
				g.dropped++
			}
			g.waiting[i].drop()
			g.waiting = slices.Delete(g.waiting, i, i+1)
		}
		g.mu.Unlock()
		if wait > 0 {
			select {
			case <-g.freed:
			case <-time.After(wait):
			}
		}
	}
}

// leave gives the slot back; false if another visitor has it already.
func (g *gate) leave(v *visitor) bool {
	g.mu.Lock()
	i := slices.Index(g.waiting, v)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	select {
	case g.freed <- struct{}{}:
	default:
	}
	return i >= 0
}

// hear notes that the visitor is not silent.
func (g *gate) hear(v *visitor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v.heard = true
}

// trust keeps the visitor's slot for it, and gives it time.
func (g *gate) trust(v *visitor) {
	v.conn.SetDeadline(time.Now().Add(provenTime))
	g.mu.Lock()
	defer g.mu.Unlock()
	v.proven = true
}

func (g *gate) receive(v *visitor) {
	g.slowDown(v)
	heard := func() { g.hear(v) }
	err := checkOwner(v.conn)
	var hello greeting
	c := v.conn
	if err == nil {
		v.conn.SetDeadline(v.since.Add(handshakeTime))
		c, hello, err = g.guard.receive(v.conn, g.self, heard)
	}
	if err == nil {
		hello, err = welcome(c, g.key, g.self, g.size, heard, func() { g.trust(v) })
	}
	kept := g.leave(v)
	if err == nil {
		c.SetDeadline(time.Time{})
		g.admit(hello, c)
		return
	}
	v.conn.Close()
	if !kept || errors.Is(err, errUnused) || g.isClosed() {
		return
	}
	// A dialer that leaves without a wrong word is no news: a rank trying several addresses
	// drops all connections but one.
	left := isDropped(err)
	if !left {
		g.log.add(source(v.conn), err)
	}
	if g.refused != nil && (!left || hello.version != 0) {
		g.refused(hello, v.conn, err)
	}
}

// slowDown lets a source of wrong secrets wait.
func (g *gate) slowDown(v *visitor) {
	if _, local := v.conn.(*net.UnixConn); local {
		return // of this user, or refused
	}
	pause := g.log.pause(source(v.conn))
	if pause <= 0 {
		return
	}
	select {
	case <-v.gone:
	case <-time.After(pause):
	}
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// close shuts the gate and waits for all goroutines.
func (g *gate) close() {
	g.shut()
	g.running.Wait()
}

// shut stops listening and drops handshakes.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.listeners {
		l.Close()
	}
	if g.closed {
		return
	}
	for _, v := range g.waiting {
		v.drop()
	}
	if g.closed = true; g.end != nil {
		close(g.end)
	}
}

// source names the origin of a connection, without the port: it differs for
// each attempt.
func source(c net.Conn) string {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.IP.String()
	}
	return "unix socket"
}
