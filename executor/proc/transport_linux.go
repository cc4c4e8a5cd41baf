package proc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/executor/internal/tcp"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// process is the transport of a rank in a process of its own: shared memory
// to the ranks of its node, TCP to the others. It sleeps in one epoll over its
// sockets and a doorbell.
//
// A rank with nothing on its way polls nothing, and no peer needs it to:
//   - Messages and payloads without room keep a driver, in the
//     background if need be, until they have left: the engine asks Flush.
//   - A peer streams to a recv of a run under way, so this rank
//     drives; or the communicator failed, and then the peer drops the rest.
//   - A peer's small sends end when they are posted: unread ones stay in the ring,
//     the socket or the peer's queue, bounded by its budget. Without budget
//     the next send asks for credit, and only a recv can give it.
//     Larger ones to another node end when they have left, if need be
//     when the peer reads again: as if they had waited for credit.
//   - Credits and wants are for steps of runs under way or to come.
//   - Every program waits for the readers of this rank's memory before its run
//     ends.
//   - Failures, losses and questions come by the control plane with its own
//     goroutines; the next call looks at a bye.
type process struct {
	own        *shm.Segment // nil if the rank is alone on its node
	near       []*shm.Link
	links      []line // by rank
	loop       *loopLink
	far        []*tcp.Link
	lastPosted *tcp.Link // the last one posted to; nil: none yet
	lookout    tcp.Lookout
	ready      readiness                             // of the connections of far
	dial       func(peer levels.Rank, number uint32) // starts connecting; attach is called later

	engine   *executor.Endpoint
	dialling context.Context // ends with the dials
	hangUp   func()          // ends the dials and waits for them
	dials    sync.WaitGroup

	memory int      // descriptor of own
	maps   [][]byte // the peers' segments
	bells  []int    // and doorbells

	noReads bool // never read another process's memory directly

	doubts doubts // of far

	congestion string // control of connections; empty for the system's

	spread   spread     // zero: the kernel alone places the rank
	shared   processors // of the node's ranks
	polls    int        // without giving up the processor, see Relax
	most     int        // of them
	began    time.Time
	epoll    int
	doorbell int
	last     time.Time // tick

	some atomic.Bool // something arrived

	mu      sync.Mutex // guards the rest, and doorbell: any goroutine may touch them
	arrived []connection
	lost    []levels.Rank // the control plane has lost them
	closed  bool
}

// line has the methods of all kinds of links.
type line interface {
	Post(m *wire.Message, payload []byte)
	Put(m *wire.Message, src []byte, token int32) bool
	Flush(s wire.Sink) bool
	IsBusy() bool
	Forget(what wire.Scope, s wire.Sink)
}

var (
	_ line            = (*tcp.Link)(nil)
	_ line            = (*shm.Link)(nil)
	_ wire.Link       = (*process)(nil)
	_ wire.Dialler    = (*process)(nil)
	_ wire.Renewer    = (*process)(nil)
	_ wire.Observer   = (*process)(nil)
	_ wire.Sleeper    = (*process)(nil)
	_ wire.Memory     = (*process)(nil)
	_ executor.Sharer = (*process)(nil)
)

type connection struct {
	peer   levels.Rank
	fd     int
	seal   *seal.Session // of the bytes on fd; nil: they are plain
	err    error
	number uint32 // of its link
}

func newProcess(rank levels.Rank, t *levels.Topology, config Config) (*process, error) {
	size, limits := t.Size(), flow.NewLimits(config.EagerMax, config.EagerBudget)
	dialling, cancel := context.WithCancel(context.Background())
	p := &process{links: make([]line, size), loop: &loopLink{me: rank}, last: time.Now(), began: time.Now(), memory: -1, polls: executor.FewestLooks, most: executor.FewestLooks}
	p.noReads, p.congestion = config.NoPeerReads, config.Congestion
	p.dialling, p.hangUp = dialling, func() { cancel(); p.dials.Wait() }
	for r := range levels.Rank(size) {
		if t.Node(r) != t.Node(rank) {
			l := tcp.NewLink(r, limits.FarMax())
			l.Lookout = &p.lookout
			p.links[r], p.far = l, append(p.far, l)
		}
	}
	p.links[rank] = p.loop
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if p.doorbell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(p.epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return p, p.listen(p.doorbell, unix.EPOLLIN)
}

func (p *process) listen(fd int, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// Post sends a message over the link to a rank. Without a link the world is closed.
func (p *process) Post(to levels.Rank, m *wire.Message, payload []byte) {
	p.connect(to)
	switch l := p.links[to].(type) {
	case nil: // the world is closed
	case *tcp.Link:
		if p.lastPosted != nil && p.lastPosted != l {
			p.lastPosted.Depart()
		}
		p.lastPosted = l
		l.Post(m, payload)
	default:
		l.Post(m, payload)
	}
}

// Put sends a payload over the link to a rank.
func (p *process) Put(to levels.Rank, m *wire.Message, src []byte, token int32) bool {
	p.connect(to)
	return p.links[to].Put(m, src, token)
}

// connect starts a TCP connection when something is to be sent for the first time.
func (p *process) connect(to levels.Rank) {
	if l, ok := p.links[to].(*tcp.Link); ok && l.MustDial() {
		p.dial(to, l.Number)
	}
}

// attach takes a connected descriptor, or the reason why there is none; any
// goroutine may call it.
func (p *process) attach(c connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.drop()
		return
	}
	p.arrived = append(p.arrived, c)
	p.some.Store(true)
	ring(p.doorbell)
}

// drop closes the descriptor, if there is one.
func (c connection) drop() {
	if c.fd >= 0 {
		unix.Close(c.fd)
	}
}

func (p *process) takeArrived() {
	p.mu.Lock()
	list := p.arrived
	p.arrived = nil
	p.some.Store(false)
	p.mu.Unlock()
	for _, c := range list {
		l, ok := p.links[c.peer].(*tcp.Link)
		if !ok || l.IsFull() || c.number != l.Number {
			c.drop() // no rank connects to itself, to its node or so often; or the connection is older than the link
			continue
		}
		if c.err == nil {
			c.err = errors.Join(tcp.SetCongestion(c.fd, p.congestion), p.listen(c.fd, unix.EPOLLIN))
		}
		if c.err != nil {
			l.NoConnection(c.err)
			c.drop()
			continue
		}
		l.AttachSealed(c.fd, c.seal)
		p.ready.add(c.fd, l)
	}
}

// Poll looks at all links.
func (p *process) Poll(s wire.Sink) bool {
	did := false
	if p.some.Load() {
		p.takeArrived()
		did = true
	}
	if p.PollNode(s) {
		did = true
	}
	found, ok := p.ready.find(p.epoll)
	for i := range found {
		if l := p.ready.of(&found[i]); l != nil && l.Poll(s) {
			did = true
		}
	}
	for _, l := range p.far {
		if !ok && l.Poll(s) {
			did = true
		}
		if l.IsBusy() && l.Flush(s) {
			did = true
		}
		l.Report(s)
	}
	p.lookout.Note()
	return did
}

// PollNode is Poll for the ranks of the node.
func (p *process) PollNode(s wire.Sink) (did bool) {
	did = p.loop.Poll(s)
	for _, l := range p.near {
		if l.Poll(s) {
			did = true
		}
		if l.IsBusy() && l.Flush(s) {
			did = true
		}
		l.Report(s)
	}
	return did
}

// Forget lets go of the buffers of a failed communicator or its failed runs.
func (p *process) Forget(what wire.Scope, s wire.Sink) {
	for _, l := range p.near {
		l.Forget(what, s)
	}
	for _, l := range p.far {
		l.Forget(what, s)
	}
}

// IsOpen reports whether a message to a rank needs no new connection.
func (p *process) IsOpen(to levels.Rank) bool {
	l, ok := p.links[to].(*tcp.Link)
	return !ok || l.IsOpen()
}

// Number returns the number of the link to a rank on another node.
func (p *process) Number(to levels.Rank) (number uint32, ok bool) {
	if l, far := p.links[to].(*tcp.Link); far {
		return l.Number, true
	}
	return 0, false
}

// Renew makes the link to a rank on another node a new one.
func (p *process) Renew(to levels.Rank, number uint32, s wire.Sink) {
	l, _ := p.links[to].(*tcp.Link)
	for _, fd := range l.Descriptors() {
		p.ready.remove(fd)
	}
	l.Renew(number, s)
}

// Flow returns the flow of bytes to a rank on another node.
func (p *process) Flow(to levels.Rank) (f wire.Flow, known bool) {
	if l, ok := p.links[to].(*tcp.Link); ok {
		return l.Flow()
	}
	return f, false
}

// Flush writes the messages posted since the last poll; it reports whether something
// is left.
func (p *process) Flush(s wire.Sink) (left bool) {
	for _, l := range p.near {
		if l.IsBusy() {
			l.Flush(s)
			left = left || l.IsBusy()
		}
	}
	for _, l := range p.far {
		if l.IsBusy() {
			l.Flush(s)
			left = left || l.IsBusy()
		}
	}
	return left
}

// Yield lets others run between two polls; other processes first, for the rank may
// wait for them.
func (p *process) Yield(n int) {
	switch {
	case n < p.polls:
	case n%16 == 15:
		runtime.Gosched()
	default:
		p.Relax()
	}
}

// quickYield is how long a yield takes if nobody wants the processor. It is a system
// call and costs more than a message: a process polls more often without one the
// less it is disturbed. If others wait for the processor it takes longer, and lets
// them have it.
const quickYield = time.Microsecond

// Connections returns the descriptors of the rank's TCP connections, by rank of the world.
func (p *process) Connections() [][]int {
	all := make([][]int, len(p.links))
	for _, l := range p.far {
		all[l.Peer] = l.Descriptors()
	}
	return all
}

// Rings counts the ranks of the node to which this one has sent a message.
func (p *process) Rings() (n int) {
	for _, l := range p.near {
		if l.HasRing() {
			n++
		}
	}
	return n
}

// Looks returns how often to look for a message before it is worth a yield.
func (p *process) Looks() int { return p.polls }

// RingTo returns the link to a rank of the node, nil to any other.
func (p *process) RingTo(peer levels.Rank) *shm.End {
	if l, ok := p.links[peer].(*shm.Link); ok {
		return &l.End
	}
	return nil
}

// Relax gives up the processor, and learns whether somebody wanted it.
func (p *process) Relax() {
	begin := time.Since(p.began)
	if p.own != nil {
		p.own.SetAway(true)
		defer p.own.SetAway(false)
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	late := time.Since(p.began)-begin > quickYield
	p.spread.note(late)
	if late {
		p.polls = max(executor.FewestLooks, p.polls/2)
	} else if p.polls < p.most {
		p.polls++
	}
}

// Arm announces a park, unless something has come.
func (p *process) Arm() bool {
	p.doubt()
	for _, l := range p.far {
		l.Watch(p.epoll)
	}
	if p.loop.some() {
		return false
	}
	if p.own == nil {
		return !p.some.Load()
	}
	p.own.SetSleeping(true)
	quiet := !p.some.Load()
	for _, l := range p.near {
		quiet = quiet && l.IsQuiet()
	}
	if !quiet {
		p.own.SetSleeping(false)
	}
	return quiet
}

// cancelLatency is how often a sleeping rank looks at its context.
const cancelLatency = 10 * time.Millisecond

// Park sleeps in epoll.
func (p *process) Park(done <-chan struct{}) (ticked bool) {
	wait := time.Until(p.last.Add(wire.Tick))
	if done != nil {
		wait = min(wait, cancelLatency)
	}
	var events [16]unix.EpollEvent
	ms := max(0, int((wait+time.Millisecond-1)/time.Millisecond))
	if n, err := unix.EpollWait(p.epoll, events[:], ms); err == nil {
		for _, ev := range events[:n] {
			if int(ev.Fd) == p.doorbell {
				var b [8]byte
				_, _ = unix.Read(p.doorbell, b[:])
			}
		}
	}
	if p.own != nil {
		p.own.SetSleeping(false)
	}
	p.lookout.Note()
	if now := time.Now(); now.Sub(p.last) >= wire.Tick {
		p.last = now
		return true
	}
	return false
}

// Wake rings the rank's own doorbell.
func (p *process) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		ring(p.doorbell)
	}
}

func ring(fd int) {
	one := [8]byte{1}
	_, _ = unix.Write(fd, one[:])
}
