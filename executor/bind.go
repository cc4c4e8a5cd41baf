package executor

import (
	"fmt"
	"iter"
	"runtime"
	"unsafe"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Bind makes a run on a communicator. Scratch and slots are allocated here.
func (c *Comm) Bind(b Binding) (*Run, error) {
	r := &Run{ending: newEnding(c), bound: bound{b: b, digest: b.Digest, call: b.description(), seal: c.seal}}
	if b.User {
		r.combine, r.element = r.combineQueued, 1
	}
	r.finished, r.err = true, fmt.Errorf("wait for %s: %w", b.Request, ErrNotStarted)
	var steps int
	var scratch, slots, backup int64
	for _, p := range r.programs() {
		if p.Size != c.Size() || p.Rank != c.me {
			return nil, fmt.Errorf("bind %s: a program of rank %d of %d on rank %d of %d", b.Request, p.Rank, p.Size, c.me, c.Size())
		}
		if p.Request.Reduces() && b.Kernel == nil {
			return nil, fmt.Errorf("bind %s: no kernel to reduce with", b.Request)
		}
		if b.User && p.Request.Reduces() {
			r.element = int64(p.Request.Type.Size())
		}
		steps, scratch, slots, backup = max(steps, p.Len()), max(scratch, p.Scratch), max(slots, p.Slots), max(backup, p.Backup)
	}
	r.pending = make([]int32, steps)
	r.flags = make([]flag, steps)
	r.addr = make([]unsafe.Pointer, steps)
	r.exposed = make([]exposure, steps)
	r.blockOf = make([]int32, steps)
	r.ready = make([]dag.ID, 0, steps)
	if c.e.world.config.Hooks.Step != nil {
		r.begun = make([]int64, steps)
	}
	r.leastSend, r.leastRecv = r.measureBuffers()
	if c.e.samples != nil {
		bytes := max(int64(len(b.Send)), int64(len(b.Recv)), r.leastSend, r.leastRecv) // buffers may come later
		r.stamps, r.about = make([]int64, steps), b.traceBound(c.id, c.me, c.ranks, bytes)
	}
	r.present, r.notified = newRankSet(c.Size()), newRankSet(c.Size())
	r.memory[tasks.Scratch] = wire.Aligned(scratch)
	if b.Scale != nil {
		r.scaled = wire.Aligned(r.leastSend)
	}
	r.b.Send, r.b.Recv = nil, nil
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	r.leads = [2][]flow.Lead{c.e.countLeads(b.Whole, c.ranks, c.e.world.limits), c.e.countLeads(b.Rest, c.ranks, c.e.world.limits)}
	if err := r.allocate(backup, slots); err != nil {
		return nil, err
	}
	r.straight = r.straighten()
	return r, r.rebind(b.Send, b.Recv)
}

// Footprint returns about how many bytes the run and its programs take: steps, scratch and shared
// memory, unless this is borrowed.
func (r *Run) Footprint() int64 {
	const perStep = 64 // of a pass's slices
	n := int64(len(r.pending))*perStep + int64(len(r.memory[tasks.Scratch])+len(r.own)+len(r.scaled))
	for _, p := range r.programs() {
		n += int64(p.Len()) * int64(unsafe.Sizeof(submodules.Step{})+perStep)
	}
	return n
}

// description returns the binding's texts, shortened.
func (b *Binding) description() *description {
	return &description{Request: shortenText(b.Request), Operation: shortenText(b.Operation), Plan: shortenText(b.Plan), Layout: shortenText(b.Layout)}
}

// countLeads returns the leads of a program on a communicator of some ranks of the world, by its
// peers; nil if there are none. The lock is held.
func (t *traffic) countLeads(p *submodules.Program, ranks []levels.Rank, limits flow.Limits) []flow.Lead {
	if p == nil || limits.Lead == 0 {
		return nil
	}
	limits = limits.Among(countSenders(p))
	sizes := func(edges []dag.ID) iter.Seq[int64] {
		return func(yield func(int64) bool) {
			for _, id := range edges {
				if !yield(p.Step(id).Len()) {
					return
				}
			}
		}
	}
	var all []flow.Lead
	for i, peer := range p.Peers {
		if t.peers.at(ranks[peer.Rank]).far {
			if all == nil {
				all = make([]flow.Lead, len(p.Peers))
			}
			all[i] = flow.Lead{Out: limits.CountLead(sizes(peer.Out)), In: limits.CountLead(sizes(peer.In))}
		}
	}
	return all
}

// countSenders returns how many ranks may send to one at the same time, the same number on all
// ranks; 1 stands for a few.
func countSenders(p *submodules.Program) int {
	if !p.Request.Matrix.IsZero() {
		return max(1, p.Request.Matrix.GiversMost())
	}
	if p.Request.Exchanges() || p.Request.Coll == tasks.Gather {
		return p.Size - 1
	}
	return 1
}

// allocate takes shared memory for as long as the run is in use: slots, and copies of the buffers
// out of the node's reach. For a run that borrows it sees to it that the rank has as much. The lock
// is held.
func (r *Run) allocate(backup, slots int64) error {
	e := r.comm.e
	if e.memory.Readable(nil) {
		backup = 0
	}
	r.backup, r.slots = backup, slots
	if _, ok := e.link.(Sharer); ok {
		e.slots.allocate(slots, e.peers.countNear(), e.memory)
	}
	if r.b.Borrows {
		defer r.giveShared()
		return r.takeShared()
	}
	shared, free, err := e.loans.shared(backup + slots)
	if err != nil {
		return r.noShared(err)
	}
	runtime.AddCleanup(r, func(free func()) { free() }, free)
	r.own = shared
	return nil
}

// takeShared gives a call its shared memory. The lock is held.
func (r *Run) takeShared() (err error) {
	if r.slots+r.backup == 0 {
		return nil
	}
	e := r.comm.e
	ring, mem := e.slots.take(r, r.slots), r.own
	if n := r.backup + r.slots - int64(len(ring)); r.b.Borrows && n > 0 {
		if r.loan, err = e.loans.take(n); err != nil {
			e.slots.giveBack(r)
			return r.noShared(err)
		}
		mem = r.loan.mem
	}
	r.memory[tasks.Backup], r.memory[tasks.Slot] = mem[:r.backup:r.backup], ring
	if ring == nil {
		r.memory[tasks.Slot] = mem[r.backup:][:r.slots:r.slots]
	}
	return nil
}

// giveShared ends a call's use of shared memory that is not the run's own. The lock is held.
func (r *Run) giveShared() {
	e := r.comm.e
	e.slots.giveBack(r)
	if r.loan != nil {
		e.loans.giveBack(r.loan)
		r.loan = nil
	}
}

// noShared is the error of a run without shared memory.
func (r *Run) noShared(err error) error {
	return fmt.Errorf("%d bytes of shared memory for %s: %w", r.backup+r.slots, r.b.Request, err)
}

// Rebind changes the caller's buffers between runs. They must be large enough
// for the programs, or nil to let go of them until the next Rebind.
func (r *Run) Rebind(send, recv []byte) error {
	e := r.comm.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.rebind(send, recv)
}

// rebind is [Run.Rebind] with the lock held.
func (r *Run) rebind(send, recv []byte) error {
	if recv != nil && int64(len(recv)) < r.leastRecv || send != nil && int64(len(send)) < r.leastSend {
		return fmt.Errorf("bind %s: buffers of %d and %d bytes, %d and %d needed", r.b.Request, len(send), len(recv), r.leastSend, r.leastRecv)
	}
	if r.started && !r.finished {
		return fmt.Errorf("bind %s: %w", r.b.Request, ErrBusy)
	}
	r.b.Send, r.b.Recv = send, recv
	r.memory[tasks.Send], r.memory[tasks.Recv] = nil, nil
	clear(r.addr) // the peers' buffers
	return nil
}

// SetUrgency changes [Binding.Urgency] between runs.
func (r *Run) SetUrgency(n int32) error {
	e := r.comm.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.started && !r.finished {
		return fmt.Errorf("urgency of %s: %w", r.b.Request, ErrBusy)
	}
	r.b.Urgency = n
	return nil
}

// measureBuffers returns the least lengths of the caller's buffers, bytes: the ends of their last
// passes.
func (d *bound) measureBuffers() (send, recv int64) {
	reach := func(p *submodules.Program, base int64) {
		if p == nil {
			return
		}
		s, v := p.Request.Buffers(p.Rank, p.Size)
		if s > 0 {
			send = max(send, base+s)
		}
		if v > 0 {
			recv = max(recv, base+v)
		}
	}
	if d.b.Passes > 0 {
		reach(d.b.Whole, (d.b.Passes-1)*d.b.Stride)
	}
	reach(d.b.Rest, d.b.Passes*d.b.Stride)
	return send, recv
}

// allocate asks for the memory of the ring, once, when a run with slots is bound. Without it there
// is no ring. near is how many ranks share the node's memory, this one included. The lock is held.
func (g *slotRing) allocate(slots int64, near int, m wire.Memory) {
	if g.asked || slots < slotsLeast {
		return
	}
	g.asked = true
	size := min(ringUsual, ringsMost/near) / slotsAlign * slotsAlign
	if size < ringLeast {
		return
	}
	mem, _, err := m.Shared(int64(size)) // lost with the rank's memory
	if err != nil {
		return // each run has slots of its own, too
	}
	for i := 0; i < len(mem); i += slotsAlign {
		mem[i] = 0 // a page's first write takes longer than a call
	}
	g.mem = mem
}
