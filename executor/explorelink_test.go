package executor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// nobody is no rank.
const nobody = levels.Rank(-1)

// network carries the messages between the ranks of an explored world. Nothing moves by itself: an adversary says what comes
// next.
type network struct {
	mu     sync.Mutex // guards notes of lines: agreements have goroutines
	lines  [][]line   // by sender and receiver
	dead   uint64     // have died, a bit for each
	memory sharedMemory
	direct bool // as between goroutine ranks: payloads with credit go straight to their place
	whole  bool // payloads leave in one part
}

// line is what is on its way from a rank to another one.
type line struct {
	stream []parcel                 // has left; first in, first out
	bulk   wire.Fifo[wire.Outgoing] // waits to leave
	notes  []letter                 // of the control plane; first in, first out
	direct []letter                 // the same, over connections of their own
}

// letter is a message of the control plane.
type letter struct {
	kind    uint8
	payload []byte
}

// parcel is a message on its way, or a part of one.
type parcel struct {
	message wire.Message
	payload []byte
	isPart  bool // of a large payload, for its place
	isLast  bool // the message itself comes with it
}

func newNetwork(size int, direct, whole bool) *network {
	n := &network{lines: make([][]line, size), direct: direct, whole: whole}
	for r := range n.lines {
		n.lines[r] = make([]line, size)
	}
	return n
}

// isEmpty reports whether nothing is on its way.
func (n *network) isEmpty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for from := range n.lines {
		for to := range n.lines[from] {
			if l := &n.lines[from][to]; len(l.stream)+len(l.notes)+len(l.direct)+l.bulk.Len() > 0 {
				return false
			}
		}
	}
	return true
}

// leavesFrom returns to whom bytes of one of a rank's buffers have yet to leave; nobody: to none.
func (n *network) leavesFrom(rank levels.Rank, buffers ...[]byte) levels.Rank {
	for to := range n.lines[rank] {
		for _, o := range n.lines[rank][to].bulk.All() {
			for _, b := range buffers {
				if len(o.Src) > 0 && len(b) > 0 && uintptr(unsafe.Pointer(&o.Src[0]))-uintptr(unsafe.Pointer(&b[0])) < uintptr(len(b)) {
					return levels.Rank(to)
				}
			}
		}
	}
	return nobody
}

// hasNotes reports whether a line has notes, and direct ones.
func (n *network) hasNotes(l *line) (notes, direct bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(l.notes) > 0, len(l.direct) > 0
}

// clear loses all that is on its way.
func (n *network) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for from := range n.lines {
		for to := range n.lines[from] {
			n.lines[from][to] = line{}
		}
	}
	n.dead = 0
}

// slowLink is a rank's end of a network. A look takes what the adversary has allowed, once.
type slowLink struct {
	net   *network
	rank  levels.Rank
	hear  levels.Rank // whose next message comes; nobody: no message does
	leave levels.Rank // to whom the next payload, or a part of it, leaves; nobody: none does
}

var _ wire.Link = (*slowLink)(nil)

func (l *slowLink) Post(to levels.Rank, m *wire.Message, payload []byte) {
	if m.Kind == wire.Notify {
		m.Age = l.net.memory.now[l.rank]
	}
	l.to(to).stream = append(l.to(to).stream, parcel{message: *m, payload: bytes.Clone(payload)})
}

func (l *slowLink) Put(to levels.Rank, m *wire.Message, src []byte, token int32) bool {
	if l.net.direct {
		if m.Kind.IsLarge() {
			copy(wire.BytesAt(m.Addr, 0, int64(len(src))), src)
			src = nil
		}
		l.Post(to, m, src)
		return true
	}
	wire.Queue(&l.to(to).bulk, wire.Outgoing{Message: *m, Src: src, Token: token})
	return false
}

func (l *slowLink) to(peer levels.Rank) *line { return &l.net.lines[l.rank][peer] }

// Poll takes what is allowed.
func (l *slowLink) Poll(s wire.Sink) bool {
	hear, leave := l.hear, l.leave
	l.hear, l.leave = nobody, nobody
	if leave != nobody {
		l.send(s, l.to(leave))
	}
	if hear == nobody {
		return leave != nobody
	}
	in := &l.net.lines[hear][l.rank]
	p := in.stream[0]
	in.stream = in.stream[1:]
	if p.isPart {
		wire.GiveBack(s, hear, &p.message)
		if dst := s.Place(hear, &p.message); dst != nil {
			copy(dst[:len(p.payload)], p.payload)
		}
		if !p.isLast {
			return true
		}
		p.message.Offset, p.payload = 0, nil
	}
	s.Deliver(hear, &p.message, p.payload)
	return true
}

// send lets the first payload of a line leave, or half of it. Its bytes are read as late as they can be.
func (l *slowLink) send(s wire.Sink, out *line) {
	b := out.bulk.First()
	p := parcel{message: b.Message, isPart: b.Message.Kind.IsLarge(), isLast: true}
	n := len(b.Src)
	if half := n / 2; p.isPart && !l.net.whole && b.Gone == 0 && half > 0 {
		n, p.isLast = half, false
	}
	p.message.Offset = int64(b.Gone)
	if b.Gone > 0 {
		p.message.Refund = 0
	}
	p.payload = bytes.Clone(b.Src[b.Gone:n])
	b.Gone = n
	out.stream = append(out.stream, p)
	if p.isLast {
		token := b.Token
		out.bulk.Pop()
		s.Sent(token)
	}
}

// Flush moves nothing: see Poll.
func (l *slowLink) Flush(wire.Sink) bool { return false }

func (l *slowLink) Forget(what wire.Scope, s wire.Sink) {
	for to := range l.net.lines[l.rank] {
		wire.DropBulk(&l.net.lines[l.rank][to].bulk, what, s, func(m *wire.Message, payload []byte) { l.Post(levels.Rank(to), m, payload) })
	}
}

// Yield, Arm, Park and Wake are of a sleeper that nobody needs: the adversary drives.
func (l *slowLink) Yield(int)                 {}
func (l *slowLink) Arm() bool                 { return false }
func (l *slowLink) Park(<-chan struct{}) bool { return false }
func (l *slowLink) Wake()                     {}

// plane is a rank's end of a control plane whose messages wait for the adversary.
type plane struct {
	net       *network
	rank      levels.Rank
	onControl func(from levels.Rank, kind uint8, payload []byte)
	onLost    func(levels.Rank, error)
}

var _ executor.ControlPlane = (*plane)(nil)

var errUnreachable = errors.New("nobody is there")

func (p *plane) Dial(_ context.Context, peer levels.Rank, _ uint8) (net.Conn, error) {
	if p.net.dead>>peer&1 != 0 {
		return nil, errUnreachable
	}
	return &noteConn{net: p.net, line: &p.net.lines[p.rank][peer]}, nil
}

func (p *plane) Recall(ctx context.Context, peer levels.Rank, purpose uint8) (net.Conn, error) {
	return p.Dial(ctx, peer, purpose)
}

// noteConn is the sender's end of a connection for notes.
type noteConn struct {
	net.Conn
	net     *network
	line    *line
	written []byte
}

// Write sends the notes that are whole, see [executor.NotePurpose].
func (c *noteConn) Write(b []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.written = append(c.written, b...)
	for len(c.written) >= 5 {
		n := int(binary.BigEndian.Uint32(c.written)) - 1
		if len(c.written) < 5+n {
			break
		}
		c.line.direct = append(c.line.direct, letter{c.written[4], bytes.Clone(c.written[5:][:n])})
		c.written = c.written[5+n:]
	}
	return len(b), nil
}

func (c *noteConn) SetDeadline(time.Time) error { return nil }
func (c *noteConn) Close() error                { return nil }

func (p *plane) Gone(_ context.Context, peer levels.Rank) bool  { return p.net.dead>>peer&1 != 0 }
func (p *plane) Lives(_ context.Context, peer levels.Rank) bool { return p.net.dead>>peer&1 == 0 }
func (p *plane) Lose(levels.Rank, error, bool)                  {}

func (p *plane) Broadcast(kind uint8, payload []byte) error {
	for to := range p.net.lines[p.rank] {
		if levels.Rank(to) != p.rank {
			_ = p.Send(levels.Rank(to), kind, payload)
		}
	}
	return nil
}

func (p *plane) Send(to levels.Rank, kind uint8, payload []byte) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	l := &p.net.lines[p.rank][to]
	l.notes = append(l.notes, letter{kind, bytes.Clone(payload)})
	return nil
}

func (p *plane) LetOut()                                            {}
func (p *plane) CutOff() []levels.Rank                              { return nil }
func (p *plane) OnControl(handler func(levels.Rank, uint8, []byte)) { p.onControl = handler }

func (p *plane) OnLost(handler func(levels.Rank, error)) { p.onLost = handler }
func (p *plane) Close(context.Context) error             { return nil }

// hear lets the rank take the next note of another one.
func (p *plane) hear(from levels.Rank, direct bool) {
	p.net.mu.Lock()
	list := &p.net.lines[from][p.rank].notes
	if direct {
		list = &p.net.lines[from][p.rank].direct
	}
	n := (*list)[0]
	*list = (*list)[1:]
	p.net.mu.Unlock()
	p.onControl(from, n.kind, n.payload)
}

// sharedMemory is what ranks have shared, as processes of a node do, and what they have left.
type sharedMemory struct {
	all  [][]byte
	ages []map[executor.CommID]uint64 // by rank: its age when it left a communicator
	now  []uint64                     // by rank: its age
}

// nodeMemory is a rank's memory, of which others read only what was shared.
type nodeMemory struct {
	wire.OneProcess
	rank levels.Rank
	*sharedMemory
}

func (m nodeMemory) Shared(n int64) ([]byte, func(), error) {
	b := wire.Aligned(n)
	m.all = append(m.all, b)
	return b, func() {}, nil
}

func (m nodeMemory) Lend(n int64) ([]byte, func(), error) { return m.Shared(n) }

func (m nodeMemory) Readable(p unsafe.Pointer) bool { return m.Holds(0, p, 1) }

func (m nodeMemory) Holds(_ levels.Rank, p unsafe.Pointer, n int64) bool {
	return slices.ContainsFunc(m.all, func(b []byte) bool {
		off := uintptr(p) - uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		return p != nil && off < uintptr(len(b)) && int64(off)+n <= int64(len(b))
	})
}

func (m nodeMemory) Leave(c executor.CommID) {
	m.now[m.rank]++
	m.ages[m.rank][c] = m.now[m.rank]
}

func (m nodeMemory) Intact(from levels.Rank, c executor.CommID, age uint64) bool {
	return m.ages[from][c] <= age
}

// places says how the ranks of an explored world lie to each other.
type places struct {
	nodes     []int32 // by rank, if nodes are far from each other; nil: all are near
	isolated  bool    // ranks read only what was shared, as processes do
	processes bool    // each rank has a world of its own
}

// newExplored makes ranks that move only when an adversary lets them. planes is nil without processes.
func newExplored(t failer, size int, c executor.Config, n *network, at places) (w *executor.World, links []*slowLink, planes []*plane) {
	t.Helper()
	c.RecorderEvents, c.StallAfter = -1, -1
	n.clear()
	n.memory = sharedMemory{now: make([]uint64, size)}
	var ports []executor.Port
	for r := range levels.Rank(size) {
		n.memory.ages = append(n.memory.ages, map[executor.CommID]uint64{})
		l := &slowLink{net: n, rank: r, hear: nobody, leave: nobody}
		links = append(links, l)
		p := executor.Port{Rank: r, Link: l, Sleeper: l, Memory: wire.OneProcess{}}
		if at.isolated {
			p.Memory = nodeMemory{rank: r, sharedMemory: &n.memory}
		}
		for _, node := range at.nodes {
			reach := wire.Near
			if node != at.nodes[r] {
				reach = wire.Far
			}
			p.Reach = append(p.Reach, reach)
		}
		ports = append(ports, p)
	}
	var err error
	if !at.processes {
		w, err = executor.New(c, executor.Setup{Size: size, Spin: 1, Ports: ports})
	} else {
		var worlds []*executor.World
		for r := range ports {
			p := &plane{net: n, rank: levels.Rank(r)}
			planes = append(planes, p)
			var one *executor.World
			if one, err = executor.New(c, executor.Setup{Size: size, Spin: 1, Ports: ports[r : r+1], Control: p}); err != nil {
				break
			}
			one.Listen()
			worlds = append(worlds, one)
		}
		w = executor.Gather(worlds)
	}
	if err != nil {
		t.Fatal(err)
	}
	for r := range levels.Rank(size) {
		executor.Seize(w.Endpoint(r))
	}
	return w, links, planes
}
