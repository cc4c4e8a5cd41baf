package watch

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of the server of metrics, which everybody may be able to reach.
const (
	mostConns   = 64               // connections
	idleTime    = 2 * time.Minute  // of one between two requests: Prometheus asks more often
	headerTime  = 10 * time.Second // for a request
	requestTime = time.Minute      // for a request and its answer
)

// crowd bounds the connections of a server. When there are too many, the one that has been without a request
// for longest gives way; failing that the newest.
type crowd struct {
	mu   sync.Mutex
	busy map[net.Conn]bool // all of them; true: with a request under way
	idle []net.Conn        // the others, oldest first
}

// note is the server's ConnState.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = slices.DeleteFunc(c.idle, func(other net.Conn) bool { return other == conn })
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(c.busy, conn)
		return
	case http.StateActive:
		c.busy[conn] = true
		return
	}
	c.busy[conn], c.idle = false, append(c.idle, conn)
	if len(c.busy) > mostConns {
		out := c.idle[0] // conn itself, if all others are busy
		c.idle = c.idle[1:]
		delete(c.busy, out)
		_ = out.Close() // the server hears of it
	}
}
