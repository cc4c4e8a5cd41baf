package executor

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"
)

// drain closes the connections: what is left is written, then this side is shut,
// and what the peers still send is read until they shut theirs too: closing a
// socket with unread bytes would reset it, and the peer lose what it hasn't read.
// What a rank of this node has no room for, and will never read, is left: it may have
// closed without taking all that was sent to it.
// Nobody drives any more; the engine's lock is held, but not while waiting.
func (p *process) drain(ctx context.Context, e *Endpoint) {
	defer p.sayLeft()
	p.forsake(e)
	wait := func() {
		if p.Arm() {
			e.mu.Unlock()
			p.Park(ctx.Done())
			e.mu.Lock()
		}
		p.Poll(e.ears())
		p.forsake(e)
	}
	for p.Flush(e.ears()) && ctx.Err() == nil {
		wait()
	}
	for !p.shut() && ctx.Err() == nil {
		wait()
	}
}

// forsake ends the links to ranks of this node that read no more.
func (p *process) forsake(e *Endpoint) {
	for _, l := range p.near {
		if l.dead == nil && (slices.Contains(e.dead, l.peer) || l.theirs.left().Load() != 0) {
			l.dead, l.told = ErrClosed, true
		}
	}
}

// sayLeft tells the ranks of this node that this one reads no more.
func (p *process) sayLeft() {
	if p.own == nil {
		return
	}
	p.own.left().Store(1)
	for _, l := range p.near {
		l.bell()
	}
}

// shut ends this side of all connections, also of those that have come since it
// was last called, and reports whether the peers have ended theirs.
func (p *process) shut() bool {
	all := true
	for _, l := range p.far {
		for _, r := range l.fds {
			if !r.shut {
				r.shut = true
				_ = unix.Shutdown(r.fd, unix.SHUT_WR) // a peer that is gone needs none
			}
			all = all && r.eof
		}
	}
	return all
}

// close frees descriptors and mappings. Slots of requests lie in this memory:
// nobody may drive any more. The engine's lock is held; what is called later
// finds no links.
func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.arrived {
		c.drop()
	}
	p.arrived = nil
	for _, l := range p.far {
		for _, r := range l.fds {
			unix.Close(r.fd)
		}
	}
	unix.Close(p.epoll)
	unix.Close(p.doorbell)
	for _, fd := range p.bells {
		unix.Close(fd)
	}
	for _, mem := range p.maps {
		_ = unix.Munmap(mem)
	}
	if p.own != nil {
		unix.Close(p.memory)
		mem := p.own.mem
		p.own.close(func() { _ = unix.Munmap(mem) })
	}
	clear(p.links)
	p.near, p.far, p.own = nil, nil, nil
}
