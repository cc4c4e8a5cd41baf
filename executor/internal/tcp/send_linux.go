//go:build linux

package tcp

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
)

// Limits of one system call to write.
const (
	longestTrain = 16            // frames with large payloads
	heaviestLoad = wire.MaxFrame // bytes of these, together
	// leastPacket is how many bytes of a payload end a packet on a slow connection. Else the
	// kernel joins waiting messages into packets of up to 64 KiB, and the first is there
	// with the last only.
	leastPacket = 1 << 10
)

// train is frames for writing with one system call, or with several if the socket
// has no room.
type train struct {
	frames      [longestTrain]frame
	first, last int    // frames[first:last] have not left; 0 <= first <= last <= longestTrain
	heads       []byte // memory of the heads
	apart       bool   // the connection is slow: messages share no packets
}

// frame is the unwritten rest of one.
type frame struct {
	head  []byte      // its header, after control frames if it is the first of a train
	body  []byte      // of a large payload; empty: control frames alone
	about wire.CommID // the body's communicator
	token int32       // to be told when body has left; -1 if it isn't the payload's last
}

func (t *train) isEmpty() bool { return t.first == t.last }

// add puts a frame behind the others.
func (t *train) add(f frame) {
	t.frames[t.last] = f
	t.last++
}

// Flush writes as much as it can: at each frame boundary first the control frames, then
// the next part of the first large payload. It reports whether it wrote anything.
func (l *Link) Flush(s wire.Sink) bool {
	wrote := false
	for l.send >= 0 && l.IsBusy() {
		if l.out.isEmpty() && (l.seal == nil || len(l.seal.left) == 0) {
			l.begin()
		}
		n, err := l.write(s)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			return wrote
		case err != nil:
			l.fail(fmt.Errorf("write: %w", err))
			return wrote
		}
		wrote = true
		if l.seal == nil {
			l.advance(n, s)
		}
		l.pace.watch(l.send, n)
	}
	return wrote
}

// write writes as much as the socket has room for.
func (l *Link) write(s wire.Sink) (int, error) {
	if l.seal != nil {
		return l.writeSealed(s)
	}
	return l.out.write(l.send)
}

// begin makes the next frame, or the next ones on a fast connection.
func (l *Link) begin() {
	t := &l.out
	t.heads, l.ctl = l.ctl, t.heads[:0]
	t.first, t.last = 0, 0
	most := 1
	if t.apart = !l.pace.fast; !t.apart {
		most = longestTrain
	}
	for from, load := 0, 0; t.last < most && l.bulk.Len() > 0; {
		b := l.bulk.First()
		n := min(len(b.Src)-b.Gone, wire.MaxFrame)
		if load += n; load > heaviestLoad && t.last > 0 {
			break
		}
		m := b.Message
		m.Offset = int64(b.Gone)
		if b.Gone > 0 {
			m.Refund = 0
		}
		t.heads = wire.AppendFrame(t.heads, &m, n)
		f := frame{head: t.heads[from:], body: b.Src[b.Gone:][:n], about: m.Comm, token: -1}
		from = len(t.heads)
		if b.Gone += n; b.Gone == len(b.Src) {
			f.token = b.Token
			l.bulk.Pop()
		}
		t.add(f)
	}
	if t.isEmpty() {
		t.add(frame{head: t.heads, token: -1})
	}
}

// advance counts n bytes as written.
func (l *Link) advance(n int, s wire.Sink) {
	for t := &l.out; !t.isEmpty(); {
		f := &t.frames[t.first]
		k := min(n, len(f.head))
		f.head, n = f.head[k:], n-k
		k = min(n, len(f.body))
		f.body, n = f.body[k:], n-k
		if len(f.head)+len(f.body) > 0 {
			return
		}
		token := f.token
		*f = frame{}
		t.first++
		if token >= 0 {
			s.Sent(token)
		}
	}
}

// Forget makes the link let go of the buffers of a failed communicator:
// they are the caller's again. The rest of a begun frame is sent from a copy, and so are
// payloads without credit.
func (l *Link) Forget(what wire.Scope, s wire.Sink) {
	for _, r := range l.fds {
		if what.Has(&r.m) {
			r.dst = nil
		}
	}
	for i := l.out.first; i < l.out.last; i++ {
		if f := &l.out.frames[i]; f.about == what.Comm && len(f.body) > 0 {
			f.body = append([]byte(nil), f.body...)
		}
	}
	wire.DropBulk(&l.bulk, what, s, l.Post)
}

// write writes as much as the socket has room for, with one system call. It never blocks, so
// it keeps the processor. Bytes behind the last payload begin a packet of its own: else a
// segment would end in the middle of one, and be complete with the next only.
func (t *train) write(fd int) (int, error) {
	f := &t.frames[t.first]
	if t.last-t.first == 1 && len(f.body) == 0 { // the cheaper call
		flags := uintptr(unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL)
		if t.apart && len(f.head) >= leastPacket {
			flags |= unix.MSG_EOR
		}
		wire.AnnounceRead(f.head)
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&f.head[0])), uintptr(len(f.head)), flags, 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	}
	var iov [2 * longestTrain]unix.Iovec
	var msg unix.Msghdr
	k := 0
	for i := t.first; i < t.last; i++ {
		for _, p := range [2][]byte{t.frames[i].head, t.frames[i].body} {
			if len(p) > 0 {
				wire.AnnounceRead(p)
				iov[k].Base = &p[0]
				iov[k].SetLen(len(p))
				k++
			}
		}
	}
	msg.Iov = &iov[0]
	msg.SetIovlen(k)
	n, _, errno := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL|unix.MSG_EOR)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
