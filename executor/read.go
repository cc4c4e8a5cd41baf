package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// isShared reports whether the node's other ranks can read a span.
func (p *running) isShared(m wire.Memory, s tasks.Span) bool { return m.Readable(p.address(s)) }

// shareStep makes a span readable, by a copy if need be.
func (r *Run) shareStep(id dag.ID, s *submodules.Step) {
	if r.isShared(r.comm.e.memory, s.A) {
		r.endStep(id)
		return
	}
	r.comm.counters.Copied += s.Len()
	r.doInChunks(id, s, r.comm.e.hand)
}

// copyBytes is a copy as a reduction of one operand.
func copyBytes(dst, a, _ []byte) { copy(dst, a) }

// notifyStep tells a peer that a step was reached, and the address of the exposed memory.
func (r *Run) notifyStep(id dag.ID, s *submodules.Step) {
	exposed := s.A
	if s.B.Region != 0 && !r.isShared(r.comm.e.memory, s.A) {
		exposed = s.B
	}
	m := r.message(wire.Notify, s)
	m.Size, m.Addr = 0, r.address(exposed)
	r.comm.e.transmit(r.peerOf(s), &m, nil)
	r.comm.counters.Notifies++
	r.endStep(id)
}

// buffer returns n bytes of memory for an operand. usual is the most that it is mostly asked for.
func (b *bounces) buffer(i int, n, usual int64) []byte {
	if int64(len(b[i])) < n {
		b[i] = make([]byte, max(usual, n))
	}
	return b[i][:n]
}

// operand returns a part of a span, the i-th of a step. Bytes of another process are read into a
// bounce buffer first, or straight into dst if there is one.
func (r *Run) operand(i int, s tasks.Span, off, n int64, dst []byte) ([]byte, error) {
	if s.Len == 0 {
		return nil, nil
	}
	if s.Region != tasks.Peer {
		return r.span(s)[off : off+n], nil
	}
	e, from := r.comm.e, r.peerOf(&r.steps[s.Ref])
	e.peers.at(from).read += n
	if r.exposed[s.Ref].remote == 0 {
		if !e.memory.Holds(from, r.addr[s.Ref], s.Off+s.Len) {
			return nil, r.comm.failure(from, fmt.Errorf("%w: exposed less than is read", ErrProtocol))
		}
		return r.span(s)[off : off+n], nil
	}
	if dst == nil {
		dst = e.bounces.buffer(i, n, chunk)
	}
	if err := e.memory.Read(from, r.exposed[s.Ref].remote+uint64(s.Off+off), dst); err != nil {
		e.addSuspect(r.comm, from, 0, fmt.Errorf("its memory can't be read: %w", err))
		return nil, errUnread
	}
	return dst, nil
}

// isIntact reports, after a read of a peer's memory, whether the peer was still in the run.
func (r *Run) isIntact(s tasks.Span) (peer levels.Rank, ok bool) {
	if s.Region != tasks.Peer {
		return 0, true
	}
	from := r.peerOf(&r.steps[s.Ref])
	return levels.Rank(r.comm.local[from]), r.comm.e.memory.Intact(from, r.comm.id, r.exposed[s.Ref].age)
}

// doInChunks does a copy or a reduction piece by piece. In between it polls the link and lets
// others break the communicator.
func (r *Run) doInChunks(id dag.ID, s *submodules.Step, do func(dst, a, b []byte)) {
	e, total := r.comm.e, s.A.Len
	for off := int64(0); off < total; {
		n := min(total-off, chunk)
		dst := r.span(s.Dst)[off : off+n]
		var into []byte
		if s.B.Len == 0 {
			into = dst // a copy needs no bounce
		}
		a, err := r.operand(0, s.A, off, n, into)
		if err == nil {
			var b []byte
			if b, err = r.operand(1, s.B, off, n, nil); err == nil && (into == nil || &a[0] != &dst[0]) {
				do(dst, a, b)
			}
		}
		if err == errUnread {
			return // and the step never ends
		}
		if err != nil {
			r.failStep(s, err)
			return
		}
		if off += n; off < total {
			e.link.Poll(e.sink())
			if e.pause(); r.isStopped() {
				return
			}
		}
	}
	if r.areIntact(s) {
		r.endStep(id)
	}
}
