package join

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
)

const (
	dialTime = 30 * time.Second
	// maxUnclaimed bounds the connections waiting for an Accept handler.
	maxUnclaimed = 1024
)

// Job is one rank's membership. The exported fields don't change; all methods may
// be called concurrently. Several Jobs may live in one process, each with a
// Config of its own.
type Job struct {
	Rank     levels.Rank
	Size     int
	Topology *levels.Topology // levels node and network; numa and site around them where [Join] says
	Peers    []*Peer          // by rank, this one included

	leave    func(context.Context) error // Config.Leave
	own      []netip.Prefix
	filtered bool
	// sharesPorts: listeners keep to a range, so the port of a dead rank is soon another process's.
	sharesPorts bool
	key         []byte
	guard       *guard
	door        *gate
	tree        *tree
	standing    bool                    // the edges have readers and writers
	edges       []*edge                 // to the parent, then to the children
	healed      atomic.Pointer[[]*edge] // these and those made later beside the tree; nil: there are none
	life        context.Context         // ends with stop
	endLife     context.CancelFunc
	inbox       *queue[delivery]
	writing     sync.WaitGroup // writers
	running     sync.WaitGroup // readers, the dispatcher

	onControl atomic.Pointer[func(levels.Rank, uint8, []byte)]
	onLost    atomic.Pointer[func(levels.Rank, error)]

	sending    sync.Mutex    // makes originate's look and put one step
	exchanging chan struct{} // held by the running Exchange

	mu           sync.Mutex
	settled      bool          // Join has seen all
	healing      chan struct{} // has one to look again; nil: nobody looks
	closing      bool          // Close was called
	stopped      bool          // its goodbyes are over: ends of connections mean nothing
	closed       chan struct{}
	closeErr     error
	absent       []error       // by rank: why it is gone; nil: here
	losses       []levels.Rank // the lost ones of absent, in the order of the news
	exchanges    map[uint32]*exchange
	nextExchange uint32
	exchangeErr  error
	accept       func(levels.Rank, uint8, net.Conn)
	unclaimed    []arrival
	building     chan arrival // tree connections, while Join waits for them
}

// arrival is an authenticated incoming connection.
type arrival struct {
	peer    levels.Rank
	purpose uint8
	conn    net.Conn
}

func withDefault(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// Secured says how connections between nodes are kept from others on the way, for people:
// "TLS 1.3, X25519MLKEM768, AES-128-GCM, by the job's secret". With certificates it tells the
// authority, the allowed names, and until when this rank's holds. Empty: they are
// not.
func (j *Job) Secured() string {
	switch {
	case j.guard == nil:
		return ""
	case j.Topology.Nodes() == 1:
		return "no connection between nodes"
	}
	return j.guard.String()
}

// TLSState is the state of a rank's TLS.
type TLSState struct {
	Made    int64     // connections, those of Join among them
	Failed  int64     // failed and refused handshakes, but those of attempts that were given up as another one was faster
	Expires time.Time // when this rank's certificate does; zero: it has none
}

// TLSState returns the state of now; false: connections are plain.
func (j *Job) TLSState() (TLSState, bool) {
	if j.guard == nil {
		return TLSState{}, false
	}
	s := TLSState{Made: j.guard.made.Load(), Failed: j.guard.failed.Load()}
	if j.guard.files != nil {
		if m, err := j.guard.files.load(); err == nil {
			s.Expires = m.leaf.NotAfter
		}
	}
	return s, true
}
