package executor

import (
	"iter"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// traffic is a rank's messages to and from the ranks of the world. The engine's lock guards it.
type traffic struct {
	link   wire.Link
	peers  peerTable
	store  blocks       // payloads waiting for their recvs
	puts   puts         // sends with bytes on their way out
	flight *flight.Ring // the last events, messages and others
	// outgoing is the message being given to the link. It is a field because a pointer passed
	// through an interface escapes: a message on the stack would be an allocation each. Only
	// prepare writes it.
	outgoing wire.Message
}

// peerState is an engine's state about one rank, itself included.
type peerState struct {
	flow.Pair
	far       bool    // it is on another node
	sent      int64   // payload bytes sent to it
	read      int64   // bytes read from its memory
	outTicket uint32  // of the last point-to-point message sent
	inTicket  uint32  // of the last one received
	landing   landing // the large message coming from it
}

// peersInPage is how many ranks in a row a rank meets together: pages are made apart, so that goroutine ranks
// don't share cache lines.
const peersInPage = 32

// peerTable is an engine's state about all ranks. Only pages of ranks it has had to do with exist: of thousands of
// goroutine ranks each talks to a few.
type peerTable struct {
	pages []*[peersInPage]peerState // by rank of the world / peersInPage; nil: not met
	size  int                       // ranks of the world
	reach []wire.Reach              // of the ranks; nil: all are near
	flow.Limits
}

func newPeerTable(size int, reach []wire.Reach, limits flow.Limits) peerTable {
	return peerTable{make([]*[peersInPage]peerState, (size+peersInPage-1)/peersInPage), size, reach, limits}
}

// at returns the state about a rank, good for the engine's lifetime.
func (t *peerTable) at(peer levels.Rank) *peerState {
	if t.pages[peer/peersInPage] == nil {
		t.meet(peer)
	}
	return &t.pages[peer/peersInPage][peer%peersInPage]
}

// meet makes the page of a rank.
func (t *peerTable) meet(peer levels.Rank) {
	page := (*[peersInPage]peerState)(wire.Apart[peerState](peersInPage))
	for i := range page {
		budget := t.NearBudget
		if r := int(peer)/peersInPage*peersInPage + i; r < len(t.reach) && t.reach[r] == wire.Far {
			page[i].far, budget = true, t.FarBudget
		}
		page[i].Pair = flow.NewPair(budget)
	}
	t.pages[peer/peersInPage] = page
}

// countNear returns how many ranks are on this rank's node, itself included.
func (t *peerTable) countNear() (n int) {
	for _, r := range t.reach {
		if r != wire.Far {
			n++
		}
	}
	if t.reach == nil {
		return t.size
	}
	return n
}

// met returns the states about ranks that exist.
func (t *peerTable) met() iter.Seq2[levels.Rank, *peerState] {
	return func(yield func(levels.Rank, *peerState) bool) {
		for at, page := range t.pages {
			for i := range page {
				if r := at*peersInPage + i; page != nil && r < t.size && !yield(levels.Rank(r), &page[i]) {
					return
				}
			}
		}
	}
}

// landing is the destination step of a rank's large message: looked up with its first part, and
// good until the message is delivered. The zero value is none.
type landing struct {
	run  *Run // nil: none
	step dag.ID
}

// isOf reports whether m is one more part, or the end, of the message landing in r.
func (l *landing) isOf(r *Run, m *wire.Message) bool {
	if l.run != r || r.seq != m.Seq || r.pass != m.Pass {
		return false
	}
	s := &r.steps[l.step]
	return s.Edge == m.Edge && s.Len() == m.Size && r.flags[l.step]&(reached|arrived|ended) == reached
}

// transmit sends m with its payload, which has been copied when it returns.
func (t *traffic) transmit(to levels.Rank, m *wire.Message, payload []byte) {
	t.link.Post(to, t.prepare(to, m, len(payload)), payload)
}

// transmitFrom sends m with the bytes of src, against credit or as a lead. It reports whether they
// have left; if not, their owner is told later, see [puts.end].
func (t *traffic) transmitFrom(to levels.Rank, m *wire.Message, src []byte, by putOwner) (done bool) {
	token := t.puts.add(by)
	if done = t.link.Put(to, t.prepare(to, m, len(src)), src, token); done {
		t.puts.take(token)
	}
	return done
}

// prepare counts a message with n bytes, copies it to a place safe for links, and adds the refund owed to the peer.
func (t *traffic) prepare(to levels.Rank, m *wire.Message, n int) *wire.Message {
	p := t.peers.at(to)
	p.sent += int64(n)
	t.outgoing = *m
	t.outgoing.Refund = p.Settle()
	t.recordMessage(flight.Sent, to, &t.outgoing)
	return &t.outgoing
}

// recordMessage records a message.
func (t *traffic) recordMessage(k flight.Kind, peer levels.Rank, m *wire.Message) {
	t.flight.Message(k, uint8(m.Kind), uint64(m.Comm), m.Seq, m.Pass, int32(peer), m.Edge|m.Tag, m.Size)
}

// consume notes that a message without credit is no longer kept, and returns its budget to the
// sender when due.
func (t *traffic) consume(from levels.Rank, payload int) {
	if t.peers.at(from).Consume(int64(payload)) {
		t.transmit(from, &wire.Message{Kind: wire.Return}, nil)
	}
}

// consumeUnwanted consumes a message without a taker, if it was charged.
func (t *traffic) consumeUnwanted(from levels.Rank, k wire.Kind, payload int) {
	if k == wire.Eager || k == wire.Tagged {
		t.consume(from, payload)
	}
}

// forgetLandings lets go of a failed run: nothing lands in it any more.
func (t *traffic) forgetLandings(r *Run) {
	for _, p := range t.peers.met() {
		if p.landing.run == r {
			p.landing = landing{}
		}
	}
}

// putOwner is the owner of a put's bytes: a step, or a transfer.
type putOwner struct {
	run      *Run
	step     dag.ID
	transfer *Transfer
}

// within reports whether the put belongs to a scope.
func (by putOwner) within(s wire.Scope) bool {
	if by.run != nil {
		return by.run.comm.id == s.Comm && (!s.Later || int32(by.run.seq-s.Seq) >= 0)
	}
	return by.transfer != nil && by.transfer.comm.id == s.Comm && !s.Later
}

// puts numbers the bytes on their way out.
type puts struct {
	all  []putOwner
	free []int32
}

// add returns a number for a new put.
func (p *puts) add(by putOwner) int32 {
	if len(p.free) == 0 {
		p.all = append(p.all, by)
		return int32(len(p.all) - 1)
	}
	n := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.all[n] = by
	return n
}

// take frees a number and returns its owner.
func (p *puts) take(n int32) putOwner {
	by := p.all[n]
	p.all[n] = putOwner{}
	p.free = append(p.free, n)
	return by
}

// hasAny reports whether bytes of a communicator are on their way.
func (p *puts) hasAny(c *Comm) bool {
	return slices.ContainsFunc(p.all, func(by putOwner) bool { return by.within(wire.Scope{Comm: c.id}) })
}

// hasTowards reports whether the bytes of a transfer are on their way to a rank, perhaps departed
// since.
func (p *puts) hasTowards(c *Comm, rank levels.Rank) bool {
	return slices.ContainsFunc(p.all, func(by putOwner) bool {
		return by.transfer != nil && by.transfer.comm == c && by.transfer.peer == rank
	})
}
