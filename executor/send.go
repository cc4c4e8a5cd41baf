package executor

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// isEager reports whether the message of a step goes without credit, as long as the budget allows.
// Those of at most eagerMax bytes do.
func (p *running) isEager(s *submodules.Step, eagerMax int64) bool {
	if s.Len() <= eagerMax {
		return true
	}
	if p.lead == nil {
		return false
	}
	if s.Kind == submodules.SendStep {
		return p.lead[s.Peer].CanSend(s.Edge)
	}
	return p.lead[s.Peer].CanReceive(s.Edge)
}

// sendStep sends the message of a step, or lets it wait for credit or budget.
func (r *Run) sendStep(id dag.ID, s *submodules.Step) {
	e, to := r.comm.e, r.peerOf(s)
	switch e.peers.at(to).Choose(s.Len(), r.flags[id]&credited != 0, r.isEager(s, e.world.limits.EagerMax)) {
	case flow.Direct:
		r.sendDirect(id, s, to)
	case flow.Eager:
		r.sendEager(id, s, to)
	case flow.Ask:
		if r.flags[id]&reached == 0 {
			m := r.message(wire.Want, s)
			e.transmit(to, &m, nil)
			r.flags[id] |= wanted
			r.waiting = append(r.waiting, id)
		}
		fallthrough
	default:
		r.flags[id] |= reached
	}
}

// sendDirect sends the message of a step against its recv's credit.
func (r *Run) sendDirect(id dag.ID, s *submodules.Step, to levels.Rank) {
	m, count := r.message(wire.Data, s), &r.comm.counters
	m.Addr = r.addr[id]
	count.Direct++
	count.Bytes += s.Len()
	if r.comm.e.transmitFrom(to, &m, r.span(s.A), putOwner{run: r, step: id}) {
		r.endStep(id)
	}
}

// sendEager sends the message of a step without credit. It has been charged.
func (r *Run) sendEager(id dag.ID, s *submodules.Step, to levels.Rank) {
	e, m, count := r.comm.e, r.message(wire.Eager, s), &r.comm.counters
	count.Eager++
	count.Bytes += s.Len()
	if s.Len() <= e.world.limits.EagerMax {
		e.transmit(to, &m, r.span(s.A))
		r.endStep(id)
	} else if r.flags[id] |= reached | leaving; e.transmitFrom(to, &m, r.span(s.A), putOwner{run: r, step: id}) {
		r.endStep(id)
	}
}

// resumeSends sends the messages waiting for budget to a peer, after a refund from it. It does not
// wait for credit: their recvs may not be ready for long. The credit still comes, and is ignored.
func (r *Run) resumeSends(to levels.Rank) {
	if len(r.waiting) == 0 || r.isStopped() {
		return
	}
	rest := r.waiting[:0]
	for _, id := range r.waiting {
		s := &r.steps[id]
		switch {
		case r.flags[id]&credited != 0:
		case r.peerOf(s) == to && r.comm.e.peers.at(to).Charge(s.Len()):
			r.sendEager(id, s, to)
		default:
			rest = append(rest, id)
		}
	}
	r.waiting = rest
}

// recvStep takes an early message, else gives credit if the sender needs it.
func (r *Run) recvStep(id dag.ID, s *submodules.Step) {
	e := r.comm.e
	r.flags[id] |= reached
	switch {
	case r.flags[id]&arrived != 0:
		block := r.blockOf[id]
		r.takePayload(id, s, e.store.get(block))
		e.store.drop(block)
	case r.flags[id]&wanted != 0 || !r.isEager(s, e.world.limits.EagerMax):
		r.giveCredit(s)
	}
}

// giveCredit tells the sender the address for the bytes of a recv.
func (r *Run) giveCredit(s *submodules.Step) {
	m := r.message(wire.Credit, s)
	m.Addr = r.address(s.Dst)
	r.comm.e.transmit(r.peerOf(s), &m, nil)
}

// takePayload ends a recv with the payload of an eager message.
func (r *Run) takePayload(id dag.ID, s *submodules.Step, payload []byte) {
	copy(r.span(s.Dst), payload)
	r.comm.e.consume(r.peerOf(s), len(payload))
	r.endStep(id)
}

// canHear reports whether a step can be told this now: nothing comes twice, and no data without
// credit.
func (p *running) canHear(id dag.ID, k wire.Kind) bool {
	f := p.flags[id]
	switch k {
	case wire.Data:
		return f&reached != 0 && f&arrived == 0
	case wire.Credit:
		return f&credited == 0
	case wire.Eager, wire.Notify:
		return f&arrived == 0
	case wire.Want:
		return f&(arrived|wanted) == 0
	}
	return true
}

// findStep returns a message's step in the running pass. The digest has been compared, so a message
// without a step means a broken peer.
func (r *Run) findStep(from levels.Rank, m *wire.Message) (dag.ID, error) {
	if m.Kind == wire.Data {
		if l := &r.comm.e.peers.at(from).landing; l.isOf(r, m) {
			return l.step, nil
		}
	}
	at := r.prog.PeerIndex(levels.Rank(r.comm.local[from]))
	if at >= 0 {
		edges, want := r.prog.Peers[at].In, submodules.RecvStep
		switch m.Kind {
		case wire.Credit:
			edges, want = r.prog.Peers[at].Out, submodules.SendStep
		case wire.Notify:
			want = submodules.AwaitStep
		}
		if m.Edge >= 0 && int(m.Edge) < len(edges) {
			id := edges[m.Edge]
			s := &r.steps[id]
			late := m.Kind == wire.Credit && r.flags[id]&wanted != 0 // see resumeSends
			if s.Kind == want && (r.flags[id]&ended == 0 || late) && (want == submodules.AwaitStep || s.Len() == m.Size) && r.canHear(id, m.Kind) {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: %v message for edge %d of call %d fits no step", ErrProtocol, m.Kind, m.Edge, m.Seq)
}

// deliverToStep takes a message for a step of the running pass. block is the place of a payload
// kept already, -1 if it is not.
func (r *Run) deliverToStep(from levels.Rank, m *wire.Message, payload []byte, block int32) {
	id, err := r.findStep(from, m)
	if err != nil {
		r.comm.blameRank(from, err)
		return
	}
	s := &r.steps[id]
	switch m.Kind {
	case wire.Eager:
		if r.flags[id]&reached != 0 {
			r.takePayload(id, s, payload)
			r.comm.e.store.drop(block)
			return
		}
		if block < 0 {
			block = r.comm.e.store.keep(payload)
		}
		r.blockOf[id] = block
		r.flags[id] |= arrived
	case wire.Data:
		r.comm.e.peers.at(from).landing = landing{}
		r.endStep(id)
	case wire.Want:
		if r.flags[id]&reached != 0 {
			r.giveCredit(s)
		}
		r.flags[id] |= wanted
	case wire.Credit:
		r.addr[id] = m.Addr
		r.flags[id] |= credited
		if r.flags[id]&(reached|leaving|ended) == reached {
			// Credits come in bunches, in the order in which their recvs are wanted: served
			// backwards, the first segment of a pipeline would leave last.
			at := len(r.ready) - r.freshSends
			r.ready = append(r.ready, id)
			copy(r.ready[at+1:], r.ready[at:])
			r.ready[at] = id
			r.freshSends++
		}
	case wire.Notify:
		r.addr[id] = m.Addr
		r.exposed[id] = exposure{m.Remote, m.Age}
		r.flags[id] |= arrived
		if r.flags[id]&reached != 0 {
			r.endStep(id)
		}
	}
}
