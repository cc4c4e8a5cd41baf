//go:build linux

package executor_test

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

// Processes are ranks that have the transports of processes, shared memory and TCP,
// although they are goroutines of this one. World shows all their engines to what
// wants to see them at once; each is in a world of its own.
type Processes struct {
	*executor.World
	topology *levels.Topology
	worlds   []*executor.World
	jobs     []*paperJob
	wires    sync.WaitGroup // goroutines of what tampers with connections
	mu       sync.Mutex     // guards who is cut off
}

// Tamper is what happens on the way from one rank to another: it moves bytes from
// one connection to the other until either ends.
type Tamper func(from, to levels.Rank, in, out *net.TCPConn)

// NewProcesses makes one for each rank of a topology. Its connections go through
// tamper, unless it is nil.
func NewProcesses(topology *levels.Topology, config proc.Config, tamper Tamper) (*Processes, error) {
	return newProcesses(topology, config, tamper, sealAll && tamper == nil)
}

// newProcesses is NewProcesses, with TLS between nodes or without.
func newProcesses(topology *levels.Topology, config proc.Config, tamper Tamper, tls bool) (*Processes, error) {
	n := topology.Size()
	p := &Processes{topology: topology, worlds: make([]*executor.World, n), jobs: make([]*paperJob, n)}
	for r := range p.jobs {
		p.jobs[r] = &paperJob{
			all: p, rank: levels.Rank(r), tamper: tamper, tls: tls, open: make(chan struct{}),
			queue: make(chan func(), 4096), end: make(chan struct{}),
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var g errgroup.Group
	for r, j := range p.jobs {
		g.Go(func() (err error) {
			p.worlds[r], err = proc.New(ctx, j, levels.Rank(r), topology, config)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	p.World = executor.Gather(p.worlds)
	return p, nil
}

// Close leaves as programs do.
func (p *Processes) Close() error {
	var g errgroup.Group
	for r, w := range p.worlds {
		g.Go(func() error { return errors.Join(p.Endpoint(levels.Rank(r)).Close(), w.Close()) })
	}
	err := g.Wait()
	p.wires.Wait()
	return err
}

// opened is what a rank's link tells of what it has opened.
type opened interface {
	// Connections are the descriptors of its TCP connections, by rank of the world.
	Connections() [][]int
	// Rings counts the rings that it writes.
	Rings() int
}

// look calls f with what a rank has opened. If the world is disturbed, it is that of the
// link below.
func (p *Processes) look(rank levels.Rank, f func(o opened, disturbed *faulty.Link)) {
	executor.OnLink(p.World, rank, func(l wire.Link) {
		disturbed, _ := l.(*faulty.Link)
		if disturbed != nil {
			l = disturbed.Under.Link
		}
		o, _ := l.(opened)
		f(o, disturbed)
	})
}

// Opened counts what ranks have opened to each other so far: pairs of ranks of
// different nodes with a connection, the connections, and rings from one rank of a
// node to another.
func (p *Processes) Opened() (pairs, connections, rings int) {
	for r := range p.worlds {
		p.look(levels.Rank(r), func(o opened, _ *faulty.Link) {
			for _, fds := range o.Connections() {
				pairs += min(len(fds), 1)
				connections += len(fds)
			}
			rings += o.Rings()
		})
	}
	return pairs / 2, connections / 2, rings // each connection has two ends
}

// ErrKilled is how the control plane explains a rank that was killed.
var ErrKilled = errors.New("killed")

// Kill is the death of a rank of a disturbed world as the others see it: it says
// nothing more, its connections end, and the control plane tells them. Its own calls
// wait until their context ends.
func (p *Processes) Kill(rank levels.Rank) {
	p.look(rank, func(o opened, disturbed *faulty.Link) {
		disturbed.Kill()
		p.jobs[rank].left.Do(func() { close(p.jobs[rank].end) })
		for _, fds := range o.Connections() {
			for _, fd := range fds {
				_ = unix.Shutdown(fd, unix.SHUT_RDWR)
			}
		}
	})
	for _, j := range p.jobs {
		if j.rank != rank {
			_ = j.put(func() { j.onLost(rank, ErrKilled) })
		}
	}
}

// Shorten lets each rank of a disturbed world cut one payload of a collective short
// on its way through shared memory, after so many. It returns how often that has
// happened. A point-to-point message may have any length: if what is left fits in its
// line it says no other.
func (p *Processes) Shorten(after int) *atomic.Int64 {
	var cut atomic.Int64
	for r := range p.worlds {
		p.look(levels.Rank(r), func(_ opened, disturbed *faulty.Link) {
			n := 0
			disturbed.Say = func(to levels.Rank, m *wire.Message, payload []byte) bool {
				if p.topology.Node(to) != p.topology.Node(levels.Rank(r)) || int(to) == r || len(payload) == 0 || m.Kind == wire.Tagged {
					return false
				}
				if n++; n != after+1 {
					return false
				}
				cut.Add(1)
				disturbed.Under.Link.Post(to, m, payload[:disturbed.Draw.IntN(len(payload))])
				return true
			}
		})
	}
	return &cut
}

// Deafen keeps what the control plane says from a rank until hear is called.
func (p *Processes) Deafen(rank levels.Rank) (hear func()) {
	said := make(chan bool)
	_ = p.jobs[rank].put(func() { <-said })
	return sync.OnceFunc(func() { close(said) })
}

// Cut cuts the control planes of two ranks off from each other.
func (p *Processes) Cut(a, b levels.Rank) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs[a].cut, p.jobs[b].cut = append(p.jobs[a].cut, b), append(p.jobs[b].cut, a)
}

// paperJob is the control plane of one of several Processes: queues instead of a
// tree.
type paperJob struct {
	all       *Processes
	rank      levels.Rank
	cut       []levels.Rank
	tamper    Tamper
	tls       bool // between nodes
	accept    func(levels.Rank, uint8, net.Conn)
	onControl func(levels.Rank, uint8, []byte)
	onLost    func(levels.Rank, error)
	open      chan struct{} // closed when accept is set
	queue     chan func()
	end       chan struct{} // closed when the rank has left or died
	left      sync.Once
	running   sync.WaitGroup
}

var _ proc.Job = (*paperJob)(nil)

// Dial connects over TCP, through tamper if there is one.
func (j *paperJob) Dial(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error) {
	near, far, err := tcpPair()
	if err != nil {
		return nil, err
	}
	if j.tamper != nil {
		out, in := far, (*net.TCPConn)(nil)
		if in, far, err = tcpPair(); err != nil {
			return nil, err
		}
		var both sync.WaitGroup
		both.Go(func() { j.tamper(j.rank, peer, out, in) })
		both.Go(func() { j.tamper(peer, j.rank, in, out) })
		j.all.wires.Go(func() {
			both.Wait()
			in.Close()
			out.Close()
		})
	}
	if !j.tls {
		return near, j.hand(ctx, peer, purpose, far)
	}
	mine, theirs, err := sealtest.Connect(near, far)
	if err != nil {
		return nil, err
	}
	return mine, j.hand(ctx, peer, purpose, theirs)
}

// sealAll makes connections between nodes TLS, unless a test looks at frames on the way.
var sealAll = os.Getenv("TIERFLOW_TEST_TLS") != ""

// Recall is Dial: nothing is refused because a rank counts as lost.
func (j *paperJob) Recall(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error) {
	select {
	case <-j.all.jobs[peer].end:
		return nil, errors.New("nobody listens")
	default:
	}
	return j.Dial(ctx, peer, purpose)
}

// Gone reports whether a rank has left or was killed.
func (j *paperJob) Gone(_ context.Context, peer levels.Rank) bool {
	select {
	case <-j.all.jobs[peer].end:
		return true
	default:
		return false
	}
}

// Lives reports whether a rank has neither left nor been killed.
func (j *paperJob) Lives(ctx context.Context, peer levels.Rank) bool { return !j.Gone(ctx, peer) }

// DialUnix connects over a pair of sockets.
func (j *paperJob) DialUnix(ctx context.Context, peer levels.Rank, purpose uint8) (*net.UnixConn, error) {
	mine, theirs, err := wiretest.UnixConns()
	if err != nil {
		return nil, err
	}
	return mine, j.hand(ctx, peer, purpose, theirs)
}

// hand gives the peer its end of a connection.
func (j *paperJob) hand(ctx context.Context, peer levels.Rank, purpose uint8, c net.Conn) error {
	other := j.all.jobs[peer]
	select {
	case <-other.open:
		other.accept(j.rank, purpose, c)
		return nil
	case <-ctx.Done():
		c.Close()
		return context.Cause(ctx)
	}
}

func tcpPair() (a, b *net.TCPConn, err error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	addr, _ := l.Addr().(*net.TCPAddr)
	if a, err = net.DialTCP("tcp", nil, addr); err != nil {
		return nil, nil, err
	}
	if b, err = l.AcceptTCP(); err != nil {
		a.Close()
	}
	return a, b, err
}

func (j *paperJob) Accept(f func(levels.Rank, uint8, net.Conn)) {
	j.accept = f
	close(j.open)
}

func (j *paperJob) OnControl(f func(levels.Rank, uint8, []byte)) { j.onControl = f }

// OnLost is the last handler to be set: what was queued is handled from then on.
func (j *paperJob) OnLost(f func(levels.Rank, error)) {
	j.onLost = f
	j.running.Go(func() {
		for {
			select {
			case f := <-j.queue:
				f()
			case <-j.end:
				return
			}
		}
	})
}

// put queues what is to be heard. A rank that has left hears nothing.
func (j *paperJob) put(f func()) error {
	select {
	case <-j.end:
		return nil
	default:
	}
	select {
	case j.queue <- f:
		return nil
	default:
		return errors.New("the queue is full")
	}
}

func (j *paperJob) Broadcast(kind uint8, payload []byte) error {
	for _, other := range j.all.jobs {
		if other != j && !slices.Contains(j.CutOff(), other.rank) {
			if err := j.Send(other.rank, kind, payload); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *paperJob) Send(to levels.Rank, kind uint8, payload []byte) error {
	select {
	case <-j.end:
		return nil // the dead say nothing
	default:
	}
	if slices.Contains(j.CutOff(), to) {
		return errors.New("cut off")
	}
	other := j.all.jobs[to]
	return other.put(func() { other.onControl(j.rank, kind, payload) })
}

// Lose tells this rank alone: the others know by themselves.
func (j *paperJob) Lose(peer levels.Rank, why error, _ bool) {
	_ = j.put(func() { j.onLost(peer, why) }) // who has left needs no news
}

// LetOut has nothing to wait for: what is in the others' queues has left.
func (j *paperJob) LetOut() {}

// CutOff are the ranks that this one was cut off from, see [Processes.Cut].
func (j *paperJob) CutOff() []levels.Rank {
	j.all.mu.Lock()
	defer j.all.mu.Unlock()
	return slices.Clone(j.cut)
}

func (j *paperJob) Close(context.Context) error {
	j.left.Do(func() { close(j.end) })
	j.running.Wait()
	return nil
}

// Congestions are the congestion controls of all connections.
func (p *Processes) Congestions() (all []string, err error) {
	for r := range p.worlds {
		p.look(levels.Rank(r), func(o opened, _ *faulty.Link) {
			for _, fds := range o.Connections() {
				for _, fd := range fds {
					name, failed := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
					all, err = append(all, name), errors.Join(err, failed)
				}
			}
		})
	}
	return all, err
}

// hooked is a control plane with functions around its broadcasts, and one behind LetOut.
type hooked struct {
	executor.ControlPlane
	before, after, out func()
}

func (h hooked) Broadcast(kind uint8, payload []byte) error {
	h.before()
	defer h.after()
	return h.ControlPlane.Broadcast(kind, payload)
}

func (h hooked) LetOut() {
	h.ControlPlane.LetOut()
	h.out()
}

// hook puts functions around the control plane of a rank, from now on; nil: none.
func (p *Processes) hook(rank levels.Rank, before, after, out func()) {
	h := hooked{before: before, after: after, out: out}
	for _, f := range []*func(){&h.before, &h.after, &h.out} {
		if *f == nil {
			*f = func() {}
		}
	}
	executor.Listening(p.worlds[rank], func(c executor.ControlPlane) executor.ControlPlane {
		h.ControlPlane = c
		return h
	})
}

// BrokenBeforeTold counts, from now on, a rank's broadcasts, and those about its communicator of
// all ranks with the rank's own end already broken.
func (p *Processes) BrokenBeforeTold(rank levels.Rank) (broken, told *atomic.Int64) {
	broken, told = new(atomic.Int64), new(atomic.Int64)
	e := p.Endpoint(rank)
	p.hook(rank, func() {
		told.Add(1)
		if e.Comm(0).Failed() {
			broken.Add(1)
		}
	}, nil, nil)
	return broken, told
}

// AfterTold calls then after each broadcast of a rank, from now on.
func (p *Processes) AfterTold(rank levels.Rank, then func()) { p.hook(rank, nil, then, nil) }

// WhenOut calls then after each LetOut of a rank, from now on.
func (p *Processes) WhenOut(rank levels.Rank, then func()) { p.hook(rank, nil, nil, then) }

// lateTold is a control plane whose broadcasts arrive later, in order.
type lateTold struct {
	executor.ControlPlane
	queue chan func()
}

func (l lateTold) Broadcast(kind uint8, payload []byte) error {
	l.queue <- func() { _ = l.ControlPlane.Broadcast(kind, payload) }
	return nil
}

// TellLate makes a rank's broadcasts, from now on, arrive so much later. What it returns
// waits for all of them.
func (p *Processes) TellLate(rank levels.Rank, by time.Duration) (wait func()) {
	l := lateTold{p.jobs[rank], make(chan func(), 100)}
	executor.Listening(p.worlds[rank], func(executor.ControlPlane) executor.ControlPlane { return l })
	var told sync.WaitGroup
	told.Go(func() {
		for tell := range l.queue {
			clocktest.Pause(context.Background(), by)
			tell()
		}
	})
	return func() {
		executor.Listening(p.worlds[rank], func(executor.ControlPlane) executor.ControlPlane { return l.ControlPlane })
		close(l.queue)
		told.Wait()
	}
}

// Lose tells one rank that another one is lost. No rank else hears of it.
func (p *Processes) Lose(at, lost levels.Rank, err error) {
	executor.Lose(p.worlds[at], lost, err)
}

// Fail is [executor.World.Fail] on a rank of its own process.
func (p *Processes) Fail(rank levels.Rank, err error) { p.worlds[rank].Fail(rank, err) }
