package executor

import (
	"context"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// straight is a program of small messages between ranks of one node as a list: its steps one after
// the other, each recv as late as can be. A call with its messages in time runs through the list
// without the walk over the graph, and reads only the rings of its senders. A call with a longer
// wait, or with another message than the expected one, goes on in the engine from where it is.
type straight struct {
	prog  *submodules.Program
	node  Sharer
	steps []straightStep
}

// straightStep is a step with everything that is the same in all its runs.
type straightStep struct {
	id   dag.ID
	kind submodules.StepKind
	len  int64
	peer levels.Rank // of the world
	link *shm.End
	m    wire.Message // of a send; the expected one of a recv
}

// Sharer is a [wire.Link] of a rank that shares memory with others: small messages between them go
// by rings, and the engine may read these itself.
type Sharer interface {
	// RingTo returns the link to a rank with a ring in either direction, nil if there are none.
	RingTo(peer levels.Rank) *shm.End
	// Looks returns how often to look for a message before a yield pays.
	Looks() int
	// Relax lets others run.
	Relax()
	// PollNode is Poll for the ranks of the node only.
	PollNode(s wire.Sink) bool
}

// strayCalls: after so many straight calls a rank also empties the rings not needed by these calls.
// Only there it hears of a rank in another call. It is less than the number of remembered calls.
const strayCalls = 16

// Looks between two yields, of a rank with a processor of its own and of one on a crowded node.
const (
	MostLooks   = 100
	FewestLooks = 1
)

// straightMax bounds such a program: it is run in one go, with the engine's lock.
const straightMax = 64

// straighten returns the list, nil if the binding is no such program. The lock is held.
func (r *Run) straighten() *straight {
	c, e := r.comm, r.comm.e
	prog := r.b.Rest
	if r.b.Passes != 0 { // far too many steps
		return nil
	}
	hooks := e.world.config.Hooks
	node, ok := e.link.(Sharer)
	if !ok || prog == nil || r.seal != nil || r.slots+r.backup > 0 || prog.Len() > straightMax || r.b.User || r.b.Ended != nil || hooks.Step != nil || hooks.Run != nil {
		return nil
	}
	s := &straight{prog: prog, node: node, steps: wire.Apart[straightStep](prog.Len())[:0]}
	for _, id := range recvsLast(prog) {
		step := prog.Step(id)
		one := straightStep{id: id, kind: step.Kind, len: step.Len()}
		switch step.Kind {
		case submodules.SendStep, submodules.RecvStep:
			one.peer = c.ranks[prog.Peers[step.Peer].Rank]
			if one.len > min(e.world.limits.EagerMax, shm.MaxPayload) {
				return nil
			}
			if one.link = node.RingTo(one.peer); one.link == nil {
				return nil
			}
			one.m = wire.Message{Kind: wire.Eager, Comm: c.id, Edge: step.Edge, Digest: r.digest, Size: one.len}
		case submodules.CopyStep, submodules.ReduceStep:
			if step.A.Region == tasks.Peer || step.B.Region == tasks.Peer || one.len > chunk {
				return nil
			}
		case submodules.JoinStep:
		default:
			return nil
		}
		s.steps = append(s.steps, one)
	}
	return s
}

// recvsLast returns an order of a program's steps: a step without need of a message comes before
// every recv it doesn't depend on.
func recvsLast(prog *submodules.Program) []dag.ID {
	pending := slices.Clone(prog.InDegree())
	var order, ready, recvs []dag.ID
	add := func(id dag.ID) {
		if prog.Step(id).Kind == submodules.RecvStep {
			recvs = append(recvs, id)
		} else {
			ready = append(ready, id)
		}
	}
	for _, id := range prog.Order() {
		if pending[id] == 0 {
			add(id)
		}
	}
	for len(ready)+len(recvs) > 0 {
		from := &ready
		if len(ready) == 0 {
			from = &recvs
		}
		id := (*from)[0]
		*from = (*from)[1:]
		order = append(order, id)
		for _, next := range prog.Succ(id) {
			if pending[next]--; pending[next] == 0 {
				add(next)
			}
		}
	}
	return order
}

// isFree reports whether the rank has nothing else on its way for the engine.
func (s *straight) isFree(c *Comm) bool {
	e := c.e
	return !e.driving && len(e.runs)+e.transfers+len(e.failing)+len(e.asking)+len(c.earlyMessages)+len(c.departures) == 0 && c.limit == nil
}

// runStraight runs the steps of the list and returns how many have ended: all of them, or the next
// one is the engine's. The lock is held all the time.
func (r *Run) runStraight(ctx context.Context) int {
	s, e := r.straight, r.comm.e
	r.loadPass(&r.bound, s.prog, 0)
	for i := range s.steps {
		if r.sampled && i > 0 {
			r.addStraight(e.samples, s.steps[i-1].id, &e.world.config)
		}
		one := &s.steps[i]
		step := &r.steps[one.id]
		count := &r.comm.counters
		switch one.kind {
		case submodules.SendStep:
			if !r.sendStraight(one, step) {
				return i
			}
		case submodules.RecvStep:
			if !s.awaitMessage(ctx, one.link) || !r.recvStraight(one, step) {
				return i
			}
		case submodules.CopyStep:
			count.Copied += one.len
			copy(r.span(step.Dst), r.span(step.A))
		case submodules.ReduceStep:
			if one.len == 0 { // a barrier's, without a kernel
				continue
			}
			count.Reduced += one.len
			r.b.Kernel(r.span(step.Dst), r.span(step.A), r.span(step.B))
		}
	}
	n := len(s.steps)
	if r.sampled && n > 0 {
		r.addStraight(e.samples, s.steps[n-1].id, &e.world.config)
	}
	return n
}

// sendStraight posts the message of a step and reports whether it could.
func (r *Run) sendStraight(one *straightStep, step *submodules.Step) bool {
	e, count := r.comm.e, &r.comm.counters
	if one.link.Dead != nil || !e.peers.at(one.peer).Charge(one.len) {
		return false
	}
	one.m.Seq = r.seq
	e.transmit(one.peer, &one.m, r.span(step.A))
	count.Eager++
	count.Bytes += one.len
	return true
}

// recvStraight takes the next message, if it is the right one.
func (r *Run) recvStraight(one *straightStep, step *submodules.Step) bool {
	e, in := r.comm.e, &one.link.In
	one.m.Seq = r.seq
	payload, refund, ok := in.Expected(&one.m)
	if !ok || one.link.Dead != nil || !e.peers.at(one.peer).Refund(refund) {
		return false // of a wrong refund the engine will hear again
	}
	e.recordMessage(flight.Received, one.peer, &one.m)
	copy(r.span(step.Dst), payload)
	if in.Skip(len(payload)) {
		one.link.Wake()
	}
	e.consume(one.peer, len(payload))
	return true
}

// awaitMessage waits a little for a message from a peer and reports whether it has come.
func (s *straight) awaitMessage(ctx context.Context, l *shm.End) bool {
	in := &l.In
	for yields := 0; yields < straightYields; yields++ {
		for range tightPolls * s.node.Looks() {
			if in.HasMessage() {
				return true
			}
		}
		for i := 0; i < presentLooks && l.Away != nil && l.Away.Load() == 0; i++ {
			if in.HasMessage() {
				return true
			}
		}
		if ctx.Err() != nil {
			return false
		}
		s.node.Relax()
	}
	return in.HasMessage()
}

// straightYields is how often a call on a crowded node lets others run before it goes on in the
// engine: with the lock held, so not for long.
const straightYields = 4

// presentLooks bounds the looks of a call on a crowded node for the message of a peer with a
// processor: the message is on its way, and would come before a yield ends. A peer that computes,
// or sleeps, has not said that it is away.
const presentLooks = 2000

// tightPolls is the number of looks at one ring in the time of one of the engine's at all links.
const tightPolls = 8

// takeOverStraight lets the engine go on with a run after n of its steps.
func (r *Run) takeOverStraight(n int) {
	for _, one := range r.straight.steps[:n] {
		if one.kind == submodules.RecvStep {
			r.present.set(r.comm.local[one.peer])
		}
		r.endStep(one.id)
	}
	r.ready = slices.DeleteFunc(r.ready, func(id dag.ID) bool { return r.flags[id]&ended != 0 })
}
