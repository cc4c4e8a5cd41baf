package local

import (
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// Shaper delays messages to emulate a network between goroutine ranks.
type Shaper interface {
	// Due says when a message of n bytes that is sent now will have arrived; zero
	// for at once. It is called by many goroutines. For one pair of ranks the
	// answers never decrease, and either all are zero or none is.
	Due(from, to levels.Rank, n int64, now time.Time) time.Time
}

// Network is a [Shaper] that emulates one link per node of a topology, with the
// given speed in each direction: all ranks of a node share it, and messages
// inside a node pass at once. It is a token bucket without depth: a message
// leaves when the sender's link is free, and arrives when the receiver's has
// taken it, Delay later.
//
// Messages pass first come, first served. TCP connections share a link instead: of two messages of
// 10 ms each that leave a node at once for two others, the first arrives after 10 ms here and after 20 ms
// there, the second after 20 ms in both. So trees in which a rank sends to several nodes at once look faster
// here than on a network, and than in package sim, which shares wires. Chains and rings take as long in both.
type Network struct {
	topology *levels.Topology
	rate     float64 // bytes per second; 0: unlimited
	delay    time.Duration

	mu  sync.Mutex
	out []time.Time // by node: when its link is free
	in  []time.Time
}

// frameOverhead is what a message costs on the wire beside its bytes: the
// headers of one frame.
const frameOverhead = 66

// NewNetwork makes one for the nodes of t. rate is in bytes per second.
func NewNetwork(t *levels.Topology, rate float64, delay time.Duration) *Network {
	return &Network{
		topology: t, rate: rate, delay: delay,
		out: make([]time.Time, t.Nodes()), in: make([]time.Time, t.Nodes()),
	}
}

// Due says when n bytes sent now will have arrived.
func (n *Network) Due(from, to levels.Rank, bytes int64, now time.Time) time.Time {
	a, b := n.topology.Node(from), n.topology.Node(to)
	if a == b {
		return time.Time{}
	}
	var takes time.Duration
	if n.rate > 0 {
		takes = time.Duration(float64(bytes+frameOverhead) / n.rate * 1e9)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	sent := later(now, n.out[a])
	n.out[a] = sent.Add(takes)
	got := later(sent, n.in[b]).Add(takes)
	n.in[b] = got
	return got.Add(n.delay)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
