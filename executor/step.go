package executor

import (
	"fmt"
	"math/rand/v2"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// chunk is how much is copied or reduced before the link is looked at again:
// tens of microseconds.
const chunk = 256 << 10

// burst is how many steps run between two looks at the link.
const burst = 32

// advance executes a burst of ready steps, fewer if there are no more or the run
// ends. Only the one who drives calls it.
func (r *Run) advance() {
	r.fresh = 0
	for n := 0; n < burst && !r.stopped(); n++ {
		if r.left == 0 {
			r.pass++
			r.beginPass()
			if r.finished {
				return
			}
		}
		if len(r.ready) == 0 {
			return
		}
		if invariants.On {
			r.shuffle()
		}
		id := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		r.execute(id)
	}
}

// shuffle puts any ready step on top, so that nothing comes to depend on the order
// of those that could all run.
func (r *Run) shuffle() {
	i, last := rand.IntN(len(r.ready)), len(r.ready)-1
	r.ready[i], r.ready[last] = r.ready[last], r.ready[i]
}

// execute does a step whose predecessors have ended, or as much of it as can be
// done now.
func (r *Run) execute(id dag.ID) {
	s := &r.steps[id]
	if r.begun != nil && r.flags[id]&reached == 0 {
		r.begun[id] = r.comm.e.now()
	}
	switch s.Kind {
	case submodules.SendStep:
		r.send(id, s)
	case submodules.RecvStep:
		r.recv(id, s)
	case submodules.CopyStep:
		r.comm.counters.Copied += s.Len()
		r.chunks(id, s, copyBytes)
	case submodules.ReduceStep:
		r.reduce(id, s)
	case submodules.ShareStep:
		r.share(id, s)
	case submodules.NotifyStep:
		r.notify(id, s)
	case submodules.AwaitStep:
		r.flags[id] |= reached
		if r.flags[id]&arrived != 0 {
			r.end(id)
		}
	case submodules.JoinStep:
		r.end(id)
	default:
		r.fail(s, fmt.Errorf("unknown kind of step %v", s.Kind))
	}
}

func copyBytes(dst, a, _ []byte) { copy(dst, a) }

// say prepares the engine's outgoing message for a step.
func (r *Run) say(k wire.Kind, s *submodules.Step) {
	r.comm.e.out = wire.Message{
		Kind: k, Comm: r.comm.id, Seq: r.seq, Pass: r.pass, Edge: s.Edge, Digest: r.digest, Size: s.Len(),
	}
}

// lead is how many of the messages of each direction between this rank and a peer go
// without credit whatever their size: those that a pass sends first to a rank of another
// node, where a credit takes a round trip. What follows them waits for credit, so that
// no more is on its way than the program has room for.
type lead struct{ out, in int32 }

// leads finds them, by the program's peers; nil if there are none. The lock is held.
func (c *Comm) leads(p *submodules.Program) []lead {
	if p == nil || c.e.world.config.lead == 0 {
		return nil
	}
	count := func(edges []dag.ID) int32 {
		sum := int64(0)
		for n, id := range edges {
			if sum += p.Step(id).Len(); sum > c.e.world.config.lead {
				return int32(n)
			}
		}
		return int32(len(edges))
	}
	var all []lead
	for i, peer := range p.Peers {
		if c.e.transport.Remote(c.ranks[peer.Rank]) {
			if all == nil {
				all = make([]lead, len(p.Peers))
			}
			all[i] = lead{out: count(peer.Out), in: count(peer.In)}
		}
	}
	return all
}

// eager reports whether the message of a step goes without credit, as long as the
// budget allows.
func (r *Run) eager(s *submodules.Step) bool {
	if s.Len() <= r.comm.e.world.config.EagerMax {
		return true
	}
	if r.lead == nil {
		return false
	}
	if s.Kind == submodules.SendStep {
		return s.Edge < r.lead[s.Peer].out
	}
	return s.Edge < r.lead[s.Peer].in
}

// send: against credit if the recv is ready, at once if eager and within the
// budget, else it waits.
func (r *Run) send(id dag.ID, s *submodules.Step) {
	e, to, n, count := r.comm.e, r.peer(s), s.Len(), &r.comm.counters
	if r.flags[id]&credited != 0 {
		r.say(wire.Data, s)
		e.out.Addr = r.addr[id]
		count.Direct++
		count.Bytes += n
		if e.put(to, r.span(s.A), putter{run: r, step: id}) {
			r.end(id)
		}
		return
	}
	switch eager := r.eager(s); {
	case eager && e.peers[to].budget >= n+eagerOverhead:
		e.peers[to].budget -= n + eagerOverhead
		r.say(wire.Eager, s)
		count.Eager++
		count.Bytes += n
		if n <= e.world.config.EagerMax {
			e.post(to, r.span(s.A))
			r.end(id)
		} else if r.flags[id] |= reached | leaving; e.put(to, r.span(s.A), putter{run: r, step: id}) {
			r.end(id)
		}
	default:
		if eager && r.flags[id]&reached == 0 {
			r.say(wire.Want, s)
			e.post(to, nil)
			r.flags[id] |= wanted
			r.waiting = append(r.waiting, id)
		}
		r.flags[id] |= reached
	}
}

// resume sends what waits for budget to a peer that has given some back: its recv may
// be far from ready to give credit. The credit comes too, then, and late.
func (r *Run) resume(to levels.Rank) {
	if len(r.waiting) == 0 || r.stopped() {
		return
	}
	rest := r.waiting[:0]
	for _, id := range r.waiting {
		s := &r.steps[id]
		switch {
		case r.flags[id]&credited != 0:
		case r.peer(s) == to && r.comm.e.peers[to].budget >= s.Len()+eagerOverhead:
			r.send(id, s)
		default:
			rest = append(rest, id)
		}
	}
	r.waiting = rest
}

// recv: takes what came early, else gives credit where the sender needs it.
func (r *Run) recv(id dag.ID, s *submodules.Step) {
	e := r.comm.e
	r.flags[id] |= reached
	switch {
	case r.flags[id]&arrived != 0:
		block := r.kept[id]
		r.take(id, s, e.store.get(block))
		e.store.drop(block)
	case r.flags[id]&wanted != 0 || !r.eager(s):
		r.credit(s)
	}
}

func (r *Run) credit(s *submodules.Step) {
	r.say(wire.Credit, s)
	r.comm.e.out.Addr = r.address(s.Dst)
	r.comm.e.post(r.peer(s), nil)
}

// take ends a recv with the payload of an eager message.
func (r *Run) take(id dag.ID, s *submodules.Step, payload []byte) {
	copy(r.span(s.Dst), payload)
	r.comm.e.consumed(r.peer(s), len(payload))
	r.end(id)
}

// fail notes that a step can't be done; it and what depends on it never end.
func (r *Run) fail(s *submodules.Step, err error) {
	c := r.comm
	c.blame(c.e.rank, &StepError{c.me, r.b.Request, r.prog.Label(s), err})
}

// expects reports whether a step can be told this now: nothing comes twice, and no
// data without credit.
func (r *Run) expects(id dag.ID, k wire.Kind) bool {
	f := r.flags[id]
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

// hears finds the step of the running pass that a message is for. The digest has
// been compared, so a message that fits no step is a broken peer.
func (r *Run) hears(from levels.Rank, m *wire.Message) (dag.ID, error) {
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
			late := m.Kind == wire.Credit && r.flags[id]&wanted != 0 // see resume
			if s.Kind == want && (r.flags[id]&ended == 0 || late) && (want == submodules.AwaitStep || s.Len() == m.Size) && r.expects(id, m.Kind) {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: %v message for edge %d of call %d fits no step", ErrProtocol, m.Kind, m.Edge, m.Seq)
}

// deliver takes a message for a step of the running pass. block is where the
// payload is kept already, -1 if it is not.
func (r *Run) deliver(from levels.Rank, m *wire.Message, payload []byte, block int32) {
	id, err := r.hears(from, m)
	if err != nil {
		r.comm.blame(from, err)
		return
	}
	s := &r.steps[id]
	switch m.Kind {
	case wire.Eager:
		if r.flags[id]&reached != 0 {
			r.take(id, s, payload)
			r.comm.e.store.drop(block)
			return
		}
		if block < 0 {
			block = r.comm.e.store.keep(payload)
		}
		r.kept[id] = block
		r.flags[id] |= arrived
	case wire.Data:
		r.end(id)
	case wire.Want:
		if r.flags[id]&reached != 0 {
			r.credit(s)
		}
		r.flags[id] |= wanted
	case wire.Credit:
		r.addr[id] = m.Addr
		r.flags[id] |= credited
		if r.flags[id]&(reached|leaving|ended) == reached {
			// Credits come in bunches, in the order in which their recvs are wanted: served
			// backwards, the first segment of a pipeline would leave last.
			at := len(r.ready) - r.fresh
			r.ready = append(r.ready, id)
			copy(r.ready[at+1:], r.ready[at:])
			r.ready[at] = id
			r.fresh++
		}
	case wire.Notify:
		r.addr[id] = m.Addr
		r.exposed[id] = exposure{m.Remote, m.Age}
		r.flags[id] |= arrived
		if r.flags[id]&reached != 0 {
			r.end(id)
		}
	}
}
