package proc

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// stop closes all that the rank has opened, in good order as long as ctx lets it.
func (p *process) stop(ctx context.Context) {
	p.drain(ctx)
	p.hangUp()
	p.engine.Hold(func(wire.Sink) { p.close() })
}

// noteLost remembers a rank lost by the control plane.
func (p *process) noteLost(rank levels.Rank) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = append(p.lost, rank)
}

// drain closes the connections. It writes the rest, shuts this side, and reads until
// the peers shut theirs too: closing a socket with unread bytes would reset it, and
// the peer would lose its unread bytes. Bytes for which a rank of this node has no room
// are left: it may have closed without taking all. Nobody drives any more. The
// engine's lock is held, but not while waiting.
func (p *process) drain(ctx context.Context) {
	p.waitUntil(ctx, func(s wire.Sink) bool { return !p.Flush(s) })
	p.waitUntil(ctx, func(wire.Sink) bool { return p.shut() })
	p.engine.Hold(func(wire.Sink) { p.sayLeft() })
}

// waitUntil moves on what is on its way until over returns true or ctx is done.
func (p *process) waitUntil(ctx context.Context, over func(s wire.Sink) bool) {
	for {
		done, armed := false, false
		p.engine.Hold(func(s wire.Sink) {
			p.forsake()
			done = over(s) || ctx.Err() != nil
			armed = !done && p.Arm()
		})
		if done {
			return
		}
		if armed {
			p.Park(ctx.Done())
		}
		p.engine.Hold(func(s wire.Sink) { p.Poll(s) })
	}
}

// forsake ends the links to lost ranks, and to those of this node after their word to read no more.
func (p *process) forsake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.near {
		l.Forsake(slices.Contains(p.lost, l.Peer), executor.ErrClosed)
	}
	for _, l := range p.far {
		if slices.Contains(p.lost, l.Peer) {
			l.Forsake(executor.ErrClosed)
		}
	}
}

// sayLeft tells the ranks of this node that this one reads no more.
func (p *process) sayLeft() {
	if p.own == nil {
		return
	}
	p.own.SetLeft()
	for _, l := range p.near {
		l.Bell()
	}
}

// shut ends this side of all connections, with those made since the last call, and reports whether the peers have ended theirs.
func (p *process) shut() bool {
	all := true
	for _, l := range p.far {
		all = l.Shut() && all
	}
	return all
}

// close frees descriptors and mappings. Slots of requests lie in this memory:
// nobody may drive any more. The engine's lock is held, if there is an engine; later
// calls find no links.
func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.arrived {
		c.drop()
	}
	p.arrived = nil
	for _, l := range p.far {
		l.Close()
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
		mem := p.own.Memory()
		p.own.Close(func() { _ = unix.Munmap(mem) })
		unix.Close(p.memory) // the segment needs it no more
	}
	clear(p.links)
	p.near, p.far, p.own = nil, nil, nil
}
