package join

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
)

const (
	joinTime  = 31 * time.Second // of which rank 0 keeps one to tell the others
	dialTime  = 30 * time.Second
	closeTime = 5 * time.Second
	// linger is how long Close waits for neighbours that said goodbye to end their
	// connections too.
	linger = time.Second
	// maxUnclaimed bounds the connections that wait for an Accept handler.
	maxUnclaimed = 1024
)

// Job is one rank's membership. The exported fields don't change; all methods may
// be called concurrently. Several Jobs may live in one process, each with a
// Config of its own.
type Job struct {
	Rank     levels.Rank
	Size     int
	Topology *levels.Topology // levels node and network
	Peers    []*Peer          // by rank, this one included

	own      []netip.Prefix
	filtered bool
	key      []byte
	door     *gate
	tree     *tree
	edges    []*edge // to the parent, then to the children
	inbox    *queue[delivery]
	running  sync.WaitGroup // readers, writers, the dispatcher

	onControl atomic.Pointer[func(levels.Rank, uint8, []byte)]
	onLost    atomic.Pointer[func(levels.Rank, error)]

	sending    sync.Mutex    // makes originate's look and put one step
	exchanging chan struct{} // held by the running Exchange

	mu           sync.Mutex
	closing      bool // Close was called
	stopped      bool // its goodbyes are over: ends of connections mean nothing
	closed       chan struct{}
	closeErr     error
	absent       []error // by rank: why it is gone; nil: here
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

// Join enters the job: it returns when all ranks are here and the control tree
// stands, or with an error that names the ranks at fault ([JoinError],
// [PeerError], [ErrSecret], [ErrVersion]). Without a deadline in ctx it gives the
// ranks 30 s to come. It closes cfg.Listener in any case.
func Join(ctx context.Context, cfg Config) (*Job, error) {
	if cfg.Listener != nil {
		defer cfg.Listener.Close()
	}
	if cfg.Size == 0 {
		cfg.Size = 1
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	ctx, cancel := withDefault(ctx, joinTime)
	defer cancel()
	j := &Job{
		Rank: cfg.Rank, Size: cfg.Size,
		filtered:   len(cfg.Interfaces) > 0,
		inbox:      newQueue[delivery](inboxSize),
		exchanging: make(chan struct{}, 1),
		closed:     make(chan struct{}),
		absent:     make([]error, cfg.Size),
		exchanges:  map[uint32]*exchange{},
	}
	if err := j.enter(ctx, &cfg); err != nil {
		j.stop(time.Now())
		return nil, fmt.Errorf("join: %w", err)
	}
	return j, nil
}

func withDefault(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// enter does what Join says; the caller stops what was started.
func (j *Job) enter(ctx context.Context, cfg *Config) error {
	log := &complaints{log: cfg.Log}
	if log.log == nil {
		log.log = slog.Default()
	}
	self, listeners, err := j.introduce(cfg)
	if err != nil {
		return err
	}
	// Connections wait in the kernel until the table with the job's key is here.
	j.door = &gate{self: j.Rank, size: j.Size, log: log, admit: j.admit, listeners: listeners}
	t, err := j.meet(ctx, cfg, self, log)
	if err != nil {
		return err
	}
	j.Peers = t.Peers
	if j.Topology, err = topologyOf(j.Peers); err != nil {
		return err
	}
	j.tree = newTree(j.Topology)
	j.key = jobKey(cfg.Secret, t.Job)
	j.building = make(chan arrival, j.Size)
	j.door.key = j.key
	j.door.open()
	if err := j.growTree(ctx); err != nil {
		return err
	}
	j.running.Go(j.dispatch) // waited for by stop, as are readers and writers
	for _, e := range j.edges {
		j.running.Go(e.write)
		j.running.Go(func() { j.listenTo(e) })
	}
	_, err = j.Exchange(ctx, nil) // all are in, or none returns
	return err
}

// introduce opens the listeners and writes this rank's record.
func (j *Job) introduce(cfg *Config) (*Peer, []net.Listener, error) {
	self := &Peer{
		Rank: j.Rank, Size: j.Size, Version: protocolVersion, Node: cfg.Node,
		PID: os.Getpid(), UID: os.Geteuid(), Hello: cfg.Hello,
	}
	var err error
	if self.Host, err = thisHost(); err != nil || j.Size == 1 {
		return self, nil, err
	}
	filters, err := parseFilters(cfg.Interfaces)
	if err != nil {
		return nil, nil, err
	}
	if j.own, err = ownAddresses(filters); err != nil {
		return nil, nil, err
	}
	listeners, offered, err := openListeners(j.own, j.filtered)
	if err != nil {
		return nil, nil, err
	}
	self.Addrs = offered
	local, path, err := listenUnix()
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return nil, nil, fmt.Errorf("listen for peers on this node: %w", err)
	}
	self.Unix = path
	return self, append(listeners, local), nil
}

// meet exchanges records through rank 0.
func (j *Job) meet(ctx context.Context, cfg *Config, self *Peer, log *complaints) (*table, error) {
	switch {
	case j.Size == 1:
		return &table{Job: make([]byte, jobIDLen), Peers: []*Peer{self}}, nil
	case j.Rank == 0:
		return runHost(ctx, cfg, self, log)
	}
	return register(ctx, cfg, self)
}

// growTree connects to the parent and waits for the children.
func (j *Job) growTree(ctx context.Context) error {
	found := make(map[levels.Rank]net.Conn)
	err := j.neighbours(ctx, found)
	j.endBuilding()
	for r, c := range found {
		if err == nil {
			err = watchSilence(c)
		}
		if err == nil {
			j.edges = append(j.edges, newEdge(r, c))
		}
	}
	if err != nil {
		for _, c := range found {
			c.Close()
		}
		j.edges = nil
	}
	return err
}

func (j *Job) neighbours(ctx context.Context, found map[levels.Rank]net.Conn) error {
	if up := j.tree.parent[j.Rank]; up >= 0 {
		c, err := j.dial(ctx, up, purposeTree, j.sameNode(up))
		if err != nil {
			return err
		}
		found[up] = c
	}
	expected := map[levels.Rank]bool{}
	for _, r := range j.tree.children(j.Rank) {
		expected[r] = true
	}
	for len(expected) > 0 {
		select {
		case a := <-j.building:
			if !expected[a.peer] {
				a.conn.Close()
				continue
			}
			delete(expected, a.peer)
			found[a.peer] = a.conn
		case <-ctx.Done():
			var late []levels.Rank
			for _, r := range j.tree.children(j.Rank) {
				if expected[r] {
					late = append(late, r)
				}
			}
			return &PeerError{late[0], fmt.Errorf("%s joined but did not connect to rank %d: %w",
				ranksText(late), j.Rank, context.Cause(ctx))}
		}
	}
	return nil
}

// endBuilding turns late connections of the tree away.
func (j *Job) endBuilding() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.building) > 0 {
		a := <-j.building
		a.conn.Close()
	}
	j.building = nil
}

// listenTo reads an edge to its end and says if that means a loss.
func (j *Job) listenTo(e *edge) {
	e.read(j.Size, j.handle)
	if err := e.loss(); err != nil {
		j.lose(e, e.peer, err)
	}
}

// Close says goodbye, keeps passing on the others' messages until all neighbours
// in the tree have said it too, and ends everything Join started; connections
// from Dial and Accept stay the caller's. It waits until ctx ends, without a
// deadline 5 s; neighbours that had not said goodbye by then are the error, as
// [PeerError]. Don't call it from a handler. Later calls return the same.
func (j *Job) Close(ctx context.Context) error {
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		<-j.closed
		return j.closeErr
	}
	j.closing = true
	for _, x := range j.exchanges {
		x.end(ErrClosed)
	}
	j.mu.Unlock()
	defer close(j.closed)

	ctx, cancel := withDefault(ctx, closeTime)
	defer cancel()
	j.flood(nil, &frame{kind: frameGoodbye, from: j.Rank, to: everyone})
	var errs []error
	for _, e := range j.edges {
		select {
		case <-e.departed:
		case <-ctx.Done():
			select {
			case <-e.departed:
			default:
				errs = append(errs, &PeerError{e.peer, fmt.Errorf("has not said goodbye: %w", context.Cause(ctx))})
			}
		}
	}
	end := time.Now().Add(linger)
	if deadline, _ := ctx.Deadline(); deadline.Before(end) {
		end = deadline
	}
	j.stop(end)
	if len(errs) > 0 {
		j.closeErr = fmt.Errorf("close: %w", reasons(errs))
	}
	return j.closeErr
}

// stop ends all goroutines and descriptors. Until end it lets queued frames out and
// waits for the neighbours to end their connections, so that nothing sent is lost.
func (j *Job) stop(end time.Time) {
	j.mu.Lock()
	j.closing, j.stopped = true, true
	unclaimed := j.unclaimed
	j.unclaimed = nil
	j.mu.Unlock()
	if j.door != nil {
		j.door.close()
	}
	for _, a := range unclaimed {
		a.conn.Close()
	}
	for _, e := range j.edges {
		e.conn.SetDeadline(end)
		e.out.close()
	}
	j.inbox.close()
	j.running.Wait()
	for _, e := range j.edges {
		e.conn.Close()
	}
}
