package executor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

func (s *ears) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	(*Endpoint)(s).deliver(from, m, payload)
}

func (s *ears) Place(from levels.Rank, m *wire.Message) []byte { return (*Endpoint)(s).place(from, m) }

func (s *ears) Sent(token int32) { (*Endpoint)(s).sent(token) }

// Fail breaks what a rank is in that said what can't be: the control plane knows no
// better. Of any other rank it may.
func (s *ears) Fail(peer levels.Rank, err error) {
	e := (*Endpoint)(s)
	if errors.Is(err, ErrProtocol) {
		e.accuse(nil, peer, err)
		return
	}
	e.suspect(nil, peer, err)
}

// deliver takes one message from the link.
func (e *Endpoint) deliver(from levels.Rank, m *wire.Message, payload []byte) {
	e.note(flight.Received, from, m)
	p := &e.peers[from]
	if !p.Refund(int64(m.Refund)) {
		e.accuse(nil, from, fmt.Errorf("%w: %v message gives back %d bytes that were not sent", ErrProtocol, m.Kind, m.Refund))
	}
	if m.Refund > 0 {
		for _, r := range e.runs {
			r.resume(from)
		}
	}
	switch m.Kind {
	case wire.Return:
		return
	case wire.Tagged, wire.Offer:
		// Nothing else tells a message from one that came before.
		if m.SendTicket != p.heard+1 {
			e.comm(m.Comm).blame(from, fmt.Errorf("%w: %v message %d came after %d", ErrProtocol, m.Kind, m.SendTicket, p.heard))
			return
		}
		p.heard++
	}
	if from == e.rank && e.comms[m.Comm] == nil {
		e.waste(from, m.Kind, len(payload)) // it was closed before this was looked at
		return
	}
	e.comm(m.Comm).deliver(from, m, payload)
}

// place is where a large payload goes.
func (e *Endpoint) place(from levels.Rank, m *wire.Message) []byte {
	c := e.comms[m.Comm]
	if c == nil || c.local == nil || c.broken != nil {
		return nil
	}
	if m.Kind == wire.Arrived {
		return c.placeTransfer(from, m)
	}
	r := c.find(m.Seq)
	if r == nil || r.pass != m.Pass || r.digest != m.Digest || r.stopped() {
		return nil
	}
	id, err := r.findStep(from, m)
	if err != nil {
		return nil
	}
	if m.Kind == wire.Data {
		e.peers[from].landing = landing{r, id}
	}
	return r.span(r.steps[id].Dst)[m.Offset:]
}

// sent ends the send whose bytes have left.
func (e *Endpoint) sent(token int32) {
	switch by := e.puts.take(token); {
	case by.run != nil:
		by.run.end(by.step)
	case by.transfer != nil:
		by.transfer.comm.endTransfer(by.transfer, nil)
	}
}

// deliver takes a message for this communicator.
func (c *Comm) deliver(from levels.Rank, m *wire.Message, payload []byte) {
	if m.Kind == wire.Bye {
		alone := c.e.world.control == nil
		if !m.Broken || alone || c.wholeBye(from, byLink) { // the other half says what is broken
			c.e.hearBye(c, departure{rank: from, seq: m.Seq, broken: m.Broken && alone})
		}
		return
	}
	if c.broken != nil || slices.ContainsFunc(c.foretold, func(f failure) bool { return !f.later }) {
		c.e.waste(from, m.Kind, len(payload))
		return
	}
	switch {
	case m.Kind.IsPointToPoint():
		c.deliverTransfer(from, m, payload)
		return
	case c.late(m.Seq):
		c.e.waste(from, m.Kind, len(payload))
		return
	}
	r := c.find(m.Seq)
	c.hasCome(from, r, m)
	switch {
	case r != nil && r.digest != m.Digest, r == nil && c.differed(m):
		c.mismatch(from, m.Seq)
		c.e.waste(from, m.Kind, len(payload))
	case r != nil && m.Kind == wire.Probe, r == nil && c.over(m.Seq):
	case r != nil && int32(m.Pass-r.pass) < 0 && m.Kind == wire.Credit: // late, see Run.resume
	case r != nil && int32(m.Pass-r.pass) < 0:
		c.blame(from, fmt.Errorf("%w: %v message for pass %d of call %d, which is in pass %d", ErrProtocol, m.Kind, m.Pass, m.Seq, r.pass))
	case r != nil && r.pass == m.Pass:
		r.deliver(from, m, payload, -1)
	default:
		c.early = append(c.early, earlyMessage{*m, from, c.e.store.keep(payload)})
	}
}

// hasCome notes that a rank is in a run, r if this one is in it now. To the
// question in a probe this rank answers with one, so that a rank which waits for
// it knows that it has come and waits itself: it is not the one that is missing.
func (c *Comm) hasCome(from levels.Rank, r *Run, m *wire.Message) {
	n := c.number(from)
	switch {
	case n < 0:
	case r != nil:
		r.came.set(int32(n))
		if m.Kind == wire.Probe && r.digest == m.Digest && !r.told.has(int32(n)) {
			r.told.set(int32(n))
			c.present(from, r.seq, r.digest)
		}
	case m.Kind == wire.Probe && c.over(m.Seq):
		if p := c.remembered(m.Seq); p.seq == m.Seq && p.digest == m.Digest {
			c.present(from, m.Seq, m.Digest)
		}
	}
}

// present tells a rank of the world that this one is, or was, in a run.
func (c *Comm) present(peer levels.Rank, seq, digest uint32) {
	c.e.transmit(peer, &wire.Message{Kind: wire.Probe, Comm: c.id, Seq: seq, Digest: digest}, nil)
}

// progress polls the link and executes what is ready. It reports whether there
// was anything to do.
func (e *Endpoint) progress() bool {
	did := e.link.Poll(e.ears())
	for i := len(e.runs) - 1; i >= 0; i-- {
		if i >= len(e.runs) {
			continue // runs ended meanwhile
		}
		r := e.runs[i]
		if (len(r.ready) > 0 || r.left == 0) && !r.stopped() {
			did = true
			r.advance()
		}
	}
	return did
}
