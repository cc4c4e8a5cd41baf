//go:build linux

package tcp

import (
	"fmt"
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// Link is the connection to one rank on another node. It reads and writes its
// own descriptor without blocking and without the runtime's poller.
type Link struct {
	Peer  levels.Rank
	small int64
	fds   []*reader // usually one; two if both ranks dialled at once
	send  int       // descriptor for writing, -1 before there is one
	dead  error     // why the link is of no use any more
	told  bool      // the engine has been told so

	dialled bool
	m       wire.Message // the one being read: a field, so reading allocates nothing

	ctl  []byte                   // whole frames to be written at the next frame boundary
	bulk wire.Fifo[wire.Outgoing] // large payloads on their way, in order
	out  train                    // frames being written
	seal *sealed                  // how it is sealed; nil: the connection for writing is plain
	pace pace
	came arrival

	Number  uint32   // how often it was renewed, see Renew; older connections are not for it
	Lookout *Lookout // the rank's; nil: it doesn't matter how fast payloads come
}

// reader takes frames from one descriptor.
type reader struct {
	fd   int
	buf  []byte // read ahead: [from:to] is not yet taken
	from int
	to   int
	m    wire.Message // the frame being read
	rest int          // bytes of its payload still to come; 0 between frames
	dst  []byte       // their place; nil to drop them
	eof  bool         // the peer has ended its side
	shut bool         // this rank has
	cut  wire.Parts   // of the large payload being read

	events uint32 // watched by epoll

	seal *unsealed // opens records; nil: the bytes are plain

	wait waiting
	got  int // bytes, at this look
}

// readAhead has room for the largest message without credit, and more.
const readAhead = MaxSmall + 16<<10

// leastStraight is how much of a payload is worth its own piece of a read, bytes. Less is
// read ahead, and copied.
const leastStraight = 32 << 10

// MaxSmall bounds the payload of a message without credit, bytes.
const MaxSmall = 64 << 10

// NewLink returns the link to a peer, without a connection. small bounds the payload of a
// message unless it is part of a large one, in bytes; it is at most [MaxSmall].
func NewLink(peer levels.Rank, small int64) *Link {
	return &Link{Peer: peer, small: small, send: -1}
}

// maxConnections is one from each side.
const maxConnections = 2

// IsFull reports whether the link has all connections made by ranks.
func (l *Link) IsFull() bool { return len(l.fds) == maxConnections }

// IsOpen reports whether a message needs no new connection.
func (l *Link) IsOpen() bool { return l.dead == nil && (l.send >= 0 || l.dialled) }

// MustDial reports whether this rank should open a connection, once.
func (l *Link) MustDial() bool {
	must := l.send < 0 && !l.dialled
	l.dialled = l.dialled || must
	return must
}

// NoConnection says why a connection could not be had. Another one will do, if there is
// one.
func (l *Link) NoConnection(err error) {
	if l.send < 0 {
		l.fail(err)
	}
}

// Report tells the engine, once, that the link is dead.
func (l *Link) Report(s wire.Sink) {
	if l.dead != nil && !l.told {
		l.told = true
		s.Fail(l.Peer, l.dead)
	}
}

// Forsake ends the link, without telling the engine, to a peer that is lost. Its connections may stay open:
// a child of its process holds them.
func (l *Link) Forsake(why error) {
	l.fail(why)
	l.told = true
	for _, r := range l.fds {
		r.eof = true
	}
}

// Shut ends this side of all connections, with those made since the last
// call, and reports whether the peer has ended its side.
func (l *Link) Shut() (ended bool) {
	ended = true
	for _, r := range l.fds {
		if !r.shut && l.holdsBack(r) {
			ended = false
		} else if !r.shut {
			r.shut = true
			r.sayEnd()
			_ = unix.Shutdown(r.fd, unix.SHUT_WR) // a peer without a socket needs none
		}
		ended = ended && r.eof
	}
	return ended
}

// Descriptors returns those of the connections.
func (l *Link) Descriptors() (fds []int) {
	for _, r := range l.fds {
		fds = append(fds, r.fd)
	}
	return fds
}

// Close closes the descriptors.
func (l *Link) Close() {
	for _, r := range l.fds {
		unix.Close(r.fd)
	}
}

// Renew ends the connections and drops everything on its way. The link is as at first then, and has the given number.
func (l *Link) Renew(number uint32, s wire.Sink) {
	for _, r := range l.fds {
		if !r.wait.since.IsZero() {
			l.Lookout.midway--
		}
	}
	l.Close()
	old := *l
	*l = Link{Peer: l.Peer, small: l.small, send: -1, Number: number, Lookout: l.Lookout}
	for _, f := range old.out.frames[old.out.first:old.out.last] {
		if f.token >= 0 {
			s.Sent(f.token)
		}
	}
	for _, b := range old.bulk.All() {
		s.Sent(b.Token)
	}
}

// Attach gives the link a connected, non-blocking descriptor to own.
func (l *Link) Attach(fd int) { l.AttachSealed(fd, nil) }

// AttachSealed is Attach of a descriptor for records; session seals and opens them. nil: the bytes
// on it are plain.
func (l *Link) AttachSealed(fd int, session *seal.Session) {
	r := &reader{fd: fd, events: unix.EPOLLIN}
	if session == nil {
		r.buf = make([]byte, readAhead)
	} else {
		r.unseal(session)
	}
	l.fds = append(l.fds, r)
	if l.send < 0 {
		l.send = fd
		if session != nil {
			l.seal = &sealed{session: session}
		}
	}
}

// Post queues a message; Flush writes it.
func (l *Link) Post(m *wire.Message, payload []byte) {
	l.ctl = append(wire.AppendFrame(l.ctl, m, len(payload)), payload...)
}

// Depart writes the waiting messages, if they are worth a packet, the connection is slow,
// and no large payload is on its way. A post to another link calls it first: a rank
// sending to several others in turns means its messages to leave in this order, and not
// all those to one peer before all to the next.
func (l *Link) Depart() {
	if len(l.ctl) >= leastPacket && !l.pace.fast && l.out.isEmpty() && l.bulk.Len() == 0 {
		l.Flush(nil) // without a large payload there is no token to tell of
	}
}

// Put queues a large payload; Flush writes it.
func (l *Link) Put(m *wire.Message, src []byte, token int32) bool {
	wire.Queue(&l.bulk, wire.Outgoing{Message: *m, Src: src, Token: token})
	return false
}

// IsBusy reports whether something is still on its way out.
func (l *Link) IsBusy() bool {
	return l.dead == nil && (!l.out.isEmpty() || len(l.ctl)+l.bulk.Len() > 0 || l.seal != nil && len(l.seal.left) > 0)
}

// fail keeps the first reason why the link is of no use.
func (l *Link) fail(err error) {
	if l.dead == nil {
		l.dead = err
	}
}

// receive reads into two pieces with one system call. The first may be empty.
func receive(fd int, a, b []byte) (int, error) {
	wire.AnnounceWrite(b)
	if len(a) == 0 { // the cheaper call
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	}
	wire.AnnounceWrite(a)
	var iov [2]unix.Iovec
	var msg unix.Msghdr
	iov[0].Base, iov[1].Base = &a[0], &b[0]
	iov[0].SetLen(len(a))
	iov[1].SetLen(len(b))
	msg.Iov = &iov[0]
	msg.SetIovlen(len(iov))
	n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Poll reads the bytes that have come, up to a bound, and hands over their messages. An error is the
// link's end.
func (l *Link) Poll(s wire.Sink) bool {
	some := false
	for _, r := range l.fds {
		if r.eof {
			continue
		}
		var did bool
		var err error
		r.got = 0
		if r.seal == nil {
			did, err = l.read(r, s)
		} else {
			did, err = l.readSealed(r, s)
		}
		some = some || did
		l.came.note(l.Lookout, &r.wait, r.got, err == nil && (r.rest > 0 || r.to > r.from))
		if err != nil {
			r.eof = true
			l.fail(err)
		}
	}
	return some
}

// readsPerPoll bounds how long one link keeps the engine from the others.
const readsPerPoll = 4

func (l *Link) read(r *reader, s wire.Sink) (some bool, err error) {
	for range readsPerPoll {
		if r.from > 0 {
			r.to = copy(r.buf, r.buf[r.from:r.to]) // the beginning of a frame
			r.from = 0
		}
		straight, ahead := r.room()
		n, err := r.receive(straight, ahead)
		if n == 0 {
			return some, err
		}
		some = true
		full := n == len(straight)+len(ahead)
		k := min(n, len(straight))
		r.to += n - k
		if k > 0 {
			r.took(k)
			l.noteArrival(r, s)
		}
		if err := l.parse(r, s); err != nil {
			return some, err
		}
		if !full {
			return some, nil
		}
	}
	return some, nil
}

// receive reads into two pieces; the first may be empty. It returns 0 if nothing more is here, and at the end: then
// with an error, unless this side has ended before.
func (r *reader) receive(straight, ahead []byte) (int, error) {
	n, err := receive(r.fd, straight, ahead)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read: %w", err)
	case n == 0:
		r.eof = true
		return 0, r.endError()
	}
	r.got += n
	return n, nil
}

// room returns the places of the next bytes: the rest of a long payload goes straight to its
// place, if that is known, and later bytes go into the buffer for reading ahead.
func (r *reader) room() (straight, ahead []byte) {
	if r.rest >= leastStraight && r.dst != nil {
		straight = r.dst[:r.rest]
	}
	return straight, r.buf[r.to:]
}

// endError returns why the link is of no use after the peer has ended its side. A leaving peer
// has told the engine before.
func (r *reader) endError() error {
	switch {
	case r.seal != nil && !r.seal.session.HasEnded():
		return fmt.Errorf("read: %w: %w", seal.ErrTruncated, io.ErrUnexpectedEOF)
	case r.rest > 0 || r.to > r.from:
		return fmt.Errorf("read: %w in the middle of a frame", io.ErrUnexpectedEOF)
	case r.shut:
		return nil
	}
	return fmt.Errorf("read: the connection ended: %w", io.EOF)
}

func (r *reader) took(n int) {
	r.rest -= n
	if r.dst != nil {
		r.dst = r.dst[n:]
	}
}

// noteArrival tells the engine when a frame's payload is complete and was the
// message's last.
func (l *Link) noteArrival(r *reader, s wire.Sink) {
	if r.rest > 0 || r.m.Kind == 0 {
		return
	}
	l.m = r.m
	r.m, r.dst = wire.Message{}, nil
	if l.m.Offset == l.m.Size {
		l.m.Offset = 0
		s.Deliver(l.Peer, &l.m, nil)
	}
}

// parse takes frames out of the bytes read ahead.
func (l *Link) parse(r *reader, s wire.Sink) error {
	for {
		if r.rest > 0 {
			n := min(r.rest, r.to-r.from)
			if r.dst != nil {
				copy(r.dst, r.buf[r.from:r.from+n])
			}
			r.from += n
			r.took(n)
			l.noteArrival(r, s)
			if r.rest > 0 {
				return nil
			}
		}
		if r.to-r.from < wire.FrameHeader {
			return nil
		}
		m, n := &l.m, 0
		var err error
		if *m, n, err = wire.ParseFrame(r.buf[r.from:r.to], l.small); err != nil {
			return err
		}
		if !m.Kind.IsLarge() {
			payload, ok := r.whole(n)
			if !ok {
				return nil
			}
			s.Deliver(l.Peer, m, payload)
			continue
		}
		if err := r.cut.Follow(m, int64(n), wire.MaxFrame); err != nil {
			return err
		}
		r.from += wire.FrameHeader
		r.rest, r.dst = n, s.Place(l.Peer, m)
		if len(r.dst) < n {
			r.dst = nil // nobody wants it any more
		} else {
			r.dst = r.dst[:n]
		}
		wire.GiveBack(s, l.Peer, m)
		m.Offset += int64(n)
		r.m = *m
		l.noteArrival(r, s)
	}
}

// whole takes a small frame if all of it is there.
func (r *reader) whole(n int) (payload []byte, ok bool) {
	if r.to-r.from < wire.FrameHeader+n {
		return nil, false
	}
	payload = r.buf[r.from+wire.FrameHeader:][:n]
	r.from += wire.FrameHeader + n
	return payload, true
}

// Watch tells epoll whether the link waits for room to write, and forgets
// descriptors that have ended.
func (l *Link) Watch(epoll int) {
	for _, r := range l.fds {
		events := uint32(unix.EPOLLIN)
		if r.eof {
			events = 0
		}
		if r.fd == l.send && l.IsBusy() {
			events |= unix.EPOLLOUT
		}
		if events != r.events {
			ev := unix.EpollEvent{Events: events, Fd: int32(r.fd)}
			op := unix.EPOLL_CTL_MOD
			switch {
			case events == 0:
				op = unix.EPOLL_CTL_DEL
			case r.events == 0:
				op = unix.EPOLL_CTL_ADD
			}
			r.events = events
			_ = unix.EpollCtl(epoll, op, r.fd, &ev) // it can only be gone
		}
	}
}
