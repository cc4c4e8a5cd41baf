package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
)

const (
	joinTime  = 30 * time.Second // unless ctx or Config.Timeout says otherwise
	tellTime  = time.Second      // that rank 0 has on top of it at most, to tell the others
	dialTime  = 30 * time.Second
	closeTime = 5 * time.Second
	// linger is how long Close waits for neighbours that said goodbye to end their
	// connections too.
	linger = time.Second
	// lastWords bounds two waits of a Close whose ctx has ended: to hear the goodbyes
	// of others, and then to let its own out.
	lastWords = 50 * time.Millisecond
	// maxUnclaimed bounds the connections that wait for an Accept handler.
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
	key      []byte
	guard    *guard
	door     *gate
	tree     *tree
	standing bool                    // the edges have readers and writers
	edges    []*edge                 // to the parent, then to the children
	healed   atomic.Pointer[[]*edge] // these and those made later beside the tree; nil: there are none
	life     context.Context         // ends with stop
	endLife  context.CancelFunc
	inbox    *queue[delivery]
	writing  sync.WaitGroup // writers
	running  sync.WaitGroup // readers, the dispatcher

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
	losses       []levels.Rank // those of absent that were lost, in the order of the news
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
// [PeerError], [ErrSecret], [ErrVersion], [ErrTLS]). Without a deadline in ctx it gives the
// ranks cfg.Timeout to come. It closes cfg.Listener in any case.
//
// The topology has a level of NUMA domains if on some node ranks are bound to
// different ones, and every rank of the job is bound to one; and one of sites if
// every rank names its site, and there are several.
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
	patience := cmp.Or(cfg.Timeout, joinTime)
	ctx, cancel := withDefault(ctx, patience+min(patience/9, tellTime)) // spareTime takes away as much
	defer cancel()
	j := &Job{
		Rank: cfg.Rank, Size: cfg.Size,
		leave:      cfg.Leave,
		filtered:   len(cfg.Interfaces) > 0,
		inbox:      newQueue[delivery](inboxSize),
		exchanging: make(chan struct{}, 1),
		closed:     make(chan struct{}),
		absent:     make([]error, cfg.Size),
		exchanges:  map[uint32]*exchange{},
	}
	j.life, j.endLife = context.WithCancel(context.Background())
	if err := j.enter(ctx, &cfg); err != nil {
		j.sayWhy(err)
		cancel()
		j.stop(ctx)
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

// Secured says how connections between nodes are kept from others on the way, for people:
// "TLS 1.3, X25519MLKEM768, AES-128-GCM, by the job's secret". With certificates it says of
// which authority, whose names are allowed, and until when this rank's holds. Empty: they are
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

// TLSState is what a rank knows of its TLS.
type TLSState struct {
	Made    int64     // connections, those of Join among them
	Failed  int64     // handshakes that failed or were refused
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

// listenTo reads an edge to its end and says if that means a loss.
func (j *Job) listenTo(e *edge) {
	e.read(j.Size, j.handle)
	if err := e.loss(); err != nil && e.stands.Load() {
		j.lose(e, e.peer, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.needHealing()
}

// Close says goodbye, keeps passing on the others' messages until all neighbours
// in the tree have said it too, and ends everything Join started; connections
// from Dial and Accept stay the caller's. It waits until ctx ends, without a
// deadline 5 s; neighbours that had not said goodbye by then are the error, as
// [PeerError]. If no rank was lost it ends with cfg.Leave. Don't call it from a
// handler. Later calls return the same.
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
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, func() { close(late) }) })()
	var waited []*edge // in vain
	for _, e := range j.edges {
		select {
		case <-e.departed:
		case <-late:
			if !e.ended() {
				waited = append(waited, e)
			}
		}
	}
	j.stop(ctx)
	var errs []error
	for _, e := range waited {
		if e.silent() {
			errs = append(errs, &PeerError{e.peer, fmt.Errorf("has not said goodbye: %w", context.Cause(ctx))})
		}
	}
	if len(errs) == 0 && j.isWhole() {
		if err := j.tellLauncher(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		j.closeErr = fmt.Errorf("close: %w", reasons(errs))
	}
	return j.closeErr
}

// Abandon is Close of a rank that can't go on. It tells the others why, before its goodbye: they lose the rank that err names
// as [JoinError] or [PeerError], else this one. Without that they would take it for the first to leave.
func (j *Job) Abandon(ctx context.Context, err error) error {
	j.sayWhy(err)
	return j.Close(ctx)
}

// sayWhy tells the neighbours why this rank leaves, and they the others.
func (j *Job) sayWhy(err error) {
	why := asJoinError(signed(err, j.Rank))
	text := why.Reason
	if p, ok := errors.AsType[*PeerError](err); ok {
		text = strings.TrimPrefix(p.Err.Error(), ErrLost.Error()+": ")
	}
	for _, r := range why.Ranks {
		f := frame{kind: frameLost, from: r, to: everyone, payload: []byte(text)}
		switch {
		case !j.standing: // nobody reads or writes yet
			for _, e := range j.edges {
				deliver(e.conn, f.encode(), time.Now().Add(lastWords))
			}
		case r == j.Rank:
			j.flood(nil, &f)
		default:
			j.lose(nil, r, f.loss())
		}
	}
}

// isWhole reports whether no rank was lost.
func (j *Job) isWhole() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !slices.ContainsFunc(j.absent, func(err error) bool { return err != nil && !errors.Is(err, ErrLeft) })
}

// tellLauncher says that this rank has ended well. Without that some launchers take
// its end for a crash, so the caller's ctx doesn't cut it short.
func (j *Job) tellLauncher() error {
	if j.leave == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return j.leave(ctx)
}

// stop ends all goroutines and descriptors. Until ctx ends it lets queued frames out;
// then it waits a little for the neighbours to end their connections, so that nothing
// sent is lost. What is here is read in any case, even if ctx had ended before a
// reader had its turn.
func (j *Job) stop(ctx context.Context) {
	j.mu.Lock()
	j.closing, j.stopped = true, true
	j.endLife()
	unclaimed := j.unclaimed
	j.unclaimed = nil
	j.mu.Unlock()
	if j.door != nil {
		j.door.close()
	}
	for _, a := range unclaimed {
		a.conn.Close()
	}
	for _, e := range j.allEdges() {
		e.out.close()
	}
	j.inbox.close()
	j.letWrite(ctx)
	end := time.Now().Add(linger)
	if ctx.Err() != nil {
		end = time.Now().Add(lastWords)
	}
	for _, e := range j.allEdges() {
		e.conn.SetReadDeadline(end)
	}
	j.running.Wait()
	for _, e := range j.allEdges() {
		e.conn.Close()
	}
}

// letWrite waits for the writers, a little longer than ctx.
func (j *Job) letWrite(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		end := time.Now().Add(lastWords)
		for _, e := range j.allEdges() {
			e.conn.SetWriteDeadline(end)
		}
	})()
	j.writing.Wait()
}
