package executor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

func (s *sink) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	(*Endpoint)(s).deliverMessage(from, m, payload)
}

func (s *sink) Place(from levels.Rank, m *wire.Message) []byte {
	return (*Endpoint)(s).findPlace(from, m)
}

func (s *sink) Sent(token int32) { s.puts.end(token) }

// Fail takes an error of the link to a peer. After a violation of the protocol it breaks all
// communicators of the peer and renews the link, because the control plane knows no better. After
// any other error the peer is suspect: the control plane may know more.
func (s *sink) Fail(peer levels.Rank, err error) {
	e := (*Endpoint)(s)
	number, ok := e.linkNumber(peer)
	if errors.Is(err, ErrProtocol) {
		e.comms.blameEverywhere(nil, peer, err)
		if ok {
			e.inBackground(func() { e.RenewLink(peer, number+1, err) })
		}
		return
	}
	e.addSuspect(nil, peer, number, err)
}

// deliverMessage takes one message from the link.
func (e *Endpoint) deliverMessage(from levels.Rank, m *wire.Message, payload []byte) {
	e.recordMessage(flight.Received, from, m)
	if m.Refund != 0 && !e.peers.at(from).Refund(int64(m.Refund)) {
		e.comms.blameEverywhere(nil, from, fmt.Errorf("%w: %v message gives back %d bytes that were not sent", ErrProtocol, m.Kind, m.Refund))
	}
	if m.Refund > 0 {
		for _, r := range e.runs {
			r.resumeSends(from)
		}
	}
	switch m.Kind {
	case wire.Return:
		return
	case wire.Tagged, wire.Offer:
		// Nothing else tells a message from an earlier one.
		p := e.peers.at(from)
		if m.SendTicket != p.inTicket+1 {
			e.ensureComm(m.Comm).blameRank(from, fmt.Errorf("%w: %v message %d came after %d", ErrProtocol, m.Kind, m.SendTicket, p.inTicket))
			return
		}
		p.inTicket++
	}
	if from == e.rank && e.comms[m.Comm] == nil {
		e.consumeUnwanted(from, m.Kind, len(payload)) // closed while the message waited
		return
	}
	e.ensureComm(m.Comm).deliverToRun(from, m, payload)
}

// findPlace returns the destination of a large payload, nil if nobody wants it.
func (e *Endpoint) findPlace(from levels.Rank, m *wire.Message) []byte {
	c := e.comms[m.Comm]
	if c == nil || c.local == nil || c.broken != nil {
		return nil
	}
	if m.Kind == wire.Arrived {
		return c.placeTransfer(from, m)
	}
	r := c.findRun(m.Seq)
	if r == nil || r.pass != m.Pass || r.digest != m.Digest || r.isStopped() {
		return nil
	}
	id, err := r.findStep(from, m)
	if err != nil {
		return nil
	}
	if m.Kind == wire.Data {
		e.peers.at(from).landing = landing{r, id}
	}
	return r.span(r.steps[id].Dst)[m.Offset:]
}

// end ends the send of a put with all bytes out.
func (p *puts) end(token int32) {
	switch by := p.take(token); {
	case by.run != nil:
		by.run.endStep(by.step)
	case by.transfer != nil:
		by.transfer.end(nil)
	}
}

// deliverToRun takes a message for this communicator.
func (c *Comm) deliverToRun(from levels.Rank, m *wire.Message, payload []byte) {
	if m.Kind == wire.Bye {
		alone := c.e.world.control == nil
		if !m.Broken || alone || c.completeBye(from, byLink) { // the other half has the reason
			onward := slices.Contains(c.onwardRanks, from) || alone && m.Broken && m.Onward
			c.e.comms.hearBye(c, departure{rank: from, seq: m.Seq, broken: m.Broken && alone, onward: onward})
		}
		return
	}
	if c.broken != nil || slices.ContainsFunc(c.earlyFailures, func(f failure) bool { return !f.later }) {
		c.e.consumeUnwanted(from, m.Kind, len(payload))
		return
	}
	switch {
	case m.Kind.IsPointToPoint():
		c.deliverTransfer(from, m, payload)
		return
	case c.isBeyondLimit(m.Seq):
		c.e.consumeUnwanted(from, m.Kind, len(payload))
		return
	}
	r := c.findRun(m.Seq)
	c.noteArrival(from, r, m)
	switch {
	case r != nil && r.digest != m.Digest, r == nil && c.differsFromPast(m):
		c.noteMismatch(from, m.Seq, m.Digest)
		c.e.consumeUnwanted(from, m.Kind, len(payload))
	case r != nil && m.Kind == wire.Probe, r == nil && c.hasEnded(m.Seq):
	case r != nil && int32(m.Pass-r.pass) < 0 && m.Kind == wire.Credit: // late, see Run.resumeSends
	case r != nil && int32(m.Pass-r.pass) < 0:
		c.blameRank(from, fmt.Errorf("%w: %v message for pass %d of call %d, which is in pass %d", ErrProtocol, m.Kind, m.Pass, m.Seq, r.pass))
	case r != nil && r.pass == m.Pass:
		r.deliverToStep(from, m, payload, -1)
	default:
		c.earlyMessages = append(c.earlyMessages, earlyMessage{*m, from, c.e.store.keep(payload)})
	}
}

// noteArrival notes that a rank is in a run; r is this rank's, nil if it isn't in it now. A probe
// is answered with a probe: "I am in this call too". So the asker knows: this rank is not the
// missing one.
func (c *Comm) noteArrival(from levels.Rank, r *Run, m *wire.Message) {
	n := c.numberOf(from)
	switch {
	case n < 0:
	case r != nil:
		r.present.set(int32(n))
		if m.Kind == wire.Probe && r.digest == m.Digest && !r.notified.has(int32(n)) {
			r.notified.set(int32(n))
			c.e.sendPresence(from, c.id, r.seq, r.digest)
		}
	case m.Kind == wire.Probe && c.hasEnded(m.Seq):
		// An answer is not answered: the asker's run may have ended too, and then it went on for ever.
		if p := c.findRecord(m.Seq); m.Pass != answerPass && p.seq == m.Seq && p.digest == m.Digest {
			c.e.transmit(from, &wire.Message{Kind: wire.Probe, Comm: c.id, Seq: m.Seq, Pass: answerPass, Digest: m.Digest}, nil)
		}
	}
}

// answerPass is the pass of an answer to a probe: "I was in this call".
const answerPass = 1

// sendPresence tells a rank that this one is in a call.
func (t *traffic) sendPresence(peer levels.Rank, comm CommID, seq, digest uint32) {
	t.transmit(peer, &wire.Message{Kind: wire.Probe, Comm: comm, Seq: seq, Digest: digest}, nil)
}

// makeProgress polls the link and executes ready steps. It reports whether there was anything to
// do.
func (e *Endpoint) makeProgress() bool {
	did := e.link.Poll(e.sink())
	for i := 0; i < len(e.runs); {
		r := e.runs[i]
		if (len(r.ready) > 0 || r.stepsLeft == 0 && !r.parked) && !r.isStopped() {
			did = true
			r.advanceSteps()
		}
		if i < len(e.runs) && e.runs[i] == r { // else it has ended, or a more urgent one is in its place
			i++
		}
	}
	return did
}
