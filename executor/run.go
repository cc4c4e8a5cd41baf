package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/dag/invariants"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Binding is what a run is made of: programs and the memory they work on.
type Binding struct {
	// Compiled is what this rank runs. Ranks compare its digest.
	submodules.Compiled
	// Send and Recv are the caller's buffers. They must stay where they are and
	// must not be touched between Start and the end of the run.
	Send, Recv []byte
	// Kernel combines elements; nil if the programs don't reduce.
	Kernel kernel.Func
	// User says that Kernel calls a caller's function, which may panic.
	User bool
	// Request is for errors. Where those of two ranks read the same, the rest says what
	// differs; all of it goes into the digest.
	Request, Operation, Plan, Layout string
	// Ended, if not nil, is called at the end of each step, by the goroutine that
	// drives the rank: it must be short and must not call back.
	Ended func(step dag.ID)
}

// Run is a bound program that can be started any number of times, one after the
// other. Its memory is its own from Bind on; running allocates nothing.
type Run struct {
	ending
	bound
	running
	watched
}

// bound is what Bind has made of a binding. Only Rebind changes it, between two calls.
type bound struct {
	b        Binding                   // Send and Recv nil: let go of
	call     *description              // for the other ranks
	digest   uint32                    // b.Digest
	needed   [2]int64                  // least lengths of b.Send and b.Recv, bytes
	leads    [2][]flow.Lead            // of b.Whole and of b.Rest, by their peers; nil: none
	straight *straight                 // nil: the engine walks the graph
	user     [2]func(dst, a, b []byte) // combine and combineApart; nil unless b.User
}

// running is a call on its way and, in the slices by step, its pass. The engine's lock
// guards it. Slices are made by Bind, for the longest program.
type running struct {
	started bool   // ever
	seq     uint32 // of the call, among those on the communicator
	pass    uint32 // from 0 on; b.Passes: the rest

	prog   *submodules.Program
	steps  []submodules.Step  // of prog
	lead   []flow.Lead        // of prog, by its peers; nil: none
	memory [tasks.Peer][]byte // by region; Send and Recv from this pass's bytes on
	pace   int64              // bytes that a caller's operation combines at a time; slowestPace <= pace <= chunk, and a multiple of an element
	left   int                // steps that have not ended; 0 <= left <= len(steps)

	pending []int32          // by step: predecessors that have not ended
	flags   []flag           // by step
	addr    []unsafe.Pointer // by step: where a send's credit or an await's exposed memory points; nil: nowhere yet
	exposed []exposure       // by step, of awaits
	kept    []int32          // by step, of recvs that have arrived and are not reached: block of the payload
	ready   []dag.ID         // steps that could run now; last in, first out, except fresh
	fresh   int              // sends on top of ready whose credit came since the last advance: first in, first out
	waiting []dag.ID         // eager sends without budget, which have asked for credit
}

// watched is what stall reports, probes and traces need of a call. The engine's lock
// guards it.
type watched struct {
	came     rankSet       // ranks of the communicator that are, or were, in this call too
	told     rankSet       // those that were told that this one is
	moved    bool          // a step ended since the last tick
	since    time.Time     // of the last tick that saw a step end; zero: there was none
	probed   bool          // since then, every peer that is waited for was sent a probe
	asked    time.Duration // how long after since the absent ones were also asked through the control plane; 0: not yet
	reported time.Duration // how long after since the next stall report is due; 0 or less: never

	begun     []int64 // by step: ns on the clock of traces; nil unless steps are traced
	startedAt int64   // ns on the clock of traces; 0 unless calls are traced
}

// flag is what has happened to a step in this pass.
type flag uint8

const (
	reached  flag = 1 << iota // its predecessors have ended
	arrived                   // its message is here
	credited                  // its recv is ready
	wanted                    // the sender of its message has asked for credit
	leaving                   // its message leaves without credit
	ended
)

// Bind makes a run on a communicator. Scratch and slots are allocated here.
func (c *Comm) Bind(b Binding) (*Run, error) {
	r := &Run{ending: newEnding(c), bound: bound{b: b, digest: b.Digest, call: b.description()}}
	if b.User {
		r.user, r.pace = [2]func(dst, a, b []byte){r.combine, r.combineApart}, firstPace
	}
	r.finished, r.err = true, fmt.Errorf("wait for %s: %w", b.Request, ErrNotStarted)
	var steps int
	var scratch, slots, backup int64
	for _, p := range []*submodules.Program{b.Whole, b.Rest} {
		if p == nil {
			continue
		}
		if p.Size != c.Size() || p.Rank != c.me {
			return nil, fmt.Errorf("bind %s: a program of rank %d of %d on rank %d of %d", b.Request, p.Rank, p.Size, c.me, c.Size())
		}
		if p.Request.Reduces() && b.Kernel == nil {
			return nil, fmt.Errorf("bind %s: no kernel to reduce with", b.Request)
		}
		steps, scratch, slots, backup = max(steps, p.Len()), max(scratch, p.Scratch), max(slots, p.Slots), max(backup, p.Backup)
	}
	r.pending = make([]int32, steps)
	r.flags = make([]flag, steps)
	r.addr = make([]unsafe.Pointer, steps)
	r.exposed = make([]exposure, steps)
	r.kept = make([]int32, steps)
	r.ready = make([]dag.ID, 0, steps)
	if c.e.world.config.Hooks.Step != nil {
		r.begun = make([]int64, steps)
	}
	r.needed[0], r.needed[1] = r.measure()
	r.came, r.told = newRankSet(c.Size()), newRankSet(c.Size())
	r.memory[tasks.Scratch] = wire.Aligned(scratch)
	r.b.Send, r.b.Recv = nil, nil
	c.e.enter()
	defer c.e.mu.Unlock()
	r.leads = [2][]flow.Lead{c.countLeads(b.Whole), c.countLeads(b.Rest)}
	r.straight = r.straighten()
	if err := r.allocate(backup, slots); err != nil {
		return nil, err
	}
	return r, r.rebind(b.Send, b.Recv)
}

// allocate takes shared memory that belongs to the run as long as it is in use: slots,
// and copies of what the ranks of the node can't read where it lies. The lock is held.
func (r *Run) allocate(backup, slots int64) error {
	m := r.comm.e.memory
	if m.Readable(nil) {
		backup = 0
	}
	shared, free, err := m.Shared(backup + slots)
	if err != nil {
		return fmt.Errorf("bind %s: %d bytes of shared slots: %w", r.b.Request, backup+slots, err)
	}
	runtime.AddCleanup(r, func(free func()) { free() }, free)
	r.memory[tasks.Backup], r.memory[tasks.Slot] = shared[:backup:backup], shared[backup:]
	return nil
}

// Rebind changes the caller's buffers between runs. They must be large enough
// for the programs, or nil to let go of them until the next Rebind.
func (r *Run) Rebind(send, recv []byte) error {
	e := r.comm.e
	e.enter()
	defer e.mu.Unlock()
	return r.rebind(send, recv)
}

// rebind is [Run.Rebind] with the lock held.
func (r *Run) rebind(send, recv []byte) error {
	needSend, needRecv := r.need()
	if recv != nil && int64(len(recv)) < needRecv || send != nil && int64(len(send)) < needSend {
		return fmt.Errorf("bind %s: buffers of %d and %d bytes, %d and %d needed", r.b.Request, len(send), len(recv), needSend, needRecv)
	}
	if r.started && !r.finished {
		return fmt.Errorf("bind %s: %w", r.b.Request, ErrBusy)
	}
	r.b.Send, r.b.Recv = send, recv
	r.memory[tasks.Send], r.memory[tasks.Recv] = nil, nil
	clear(r.addr) // the peers' buffers
	return nil
}

// need is the size of the caller's buffers, bytes, as measured once.
func (r *Run) need() (send, recv int64) { return r.needed[0], r.needed[1] }

// measure finds it: as far as the last pass that uses the buffers reaches.
func (r *Run) measure() (send, recv int64) {
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
	if r.b.Passes > 0 {
		reach(r.b.Whole, (r.b.Passes-1)*r.b.Stride)
	}
	reach(r.b.Rest, r.b.Passes*r.b.Stride)
	return send, recv
}

// Seq is the number of the last start, among those on the communicator; ok is false if
// there was none.
func (r *Run) Seq() (seq uint32, ok bool) {
	r.comm.e.enter()
	defer r.comm.e.mu.Unlock()
	return r.seq, r.started
}

// Start begins the run and returns at once; the run goes on by itself. All ranks
// of the communicator must start the same runs in the same order. When ctx is
// cancelled before the run has ended, the communicator breaks on all ranks.
func (r *Run) Start(ctx context.Context) error {
	if _, err := r.start(ctx, false); err != nil {
		return err
	}
	r.comm.e.release()
	r.watch(ctx)
	return nil
}

// Do is Start and Wait in one, without a goroutine in between.
func (r *Run) Do(ctx context.Context) error {
	through, err := r.start(ctx, true)
	if err != nil {
		return err
	}
	e := r.comm.e
	if through && !e.link.Flush(e.ears()) {
		e.unlock() // nobody waits, and nothing is left to be done
		return nil
	}
	e.dispatch()
	return r.await(ctx)
}

// start leaves the engine's lock held, unless it returns an error. If the caller waits
// anyway, it may take its time. It reports whether the run went straight through.
func (r *Run) start(ctx context.Context, waits bool) (through bool, err error) {
	c, e := r.comm, r.comm.e
	e.enter()
	defer crash()
	if c.starting { // and has let go of the lock for a moment
		e.unlock()
		return false, fmt.Errorf("start %s: another start on this communicator: %w", r.b.Request, ErrBusy)
	}
	c.starting = true
	if err = c.admit(ctx); err == nil {
		err = r.startable()
	}
	if err == nil {
		through = r.begin(ctx, waits)
	}
	c.starting = false
	if err != nil {
		e.unlock()
		return false, fmt.Errorf("start %s: %w", r.b.Request, err)
	}
	return through, nil
}

// begin reports whether the run went straight through.
func (r *Run) begin(ctx context.Context, waits bool) bool {
	c, e := r.comm, r.comm.e
	if waits && r.straight != nil && c.seq%strayCalls == 0 && !e.driving {
		r.straight.node.PollNode(e.ears())
	}
	r.seq = c.seq
	c.seq++
	c.past[r.seq%pastRuns] = record{r.seq, r.digest, r.call}
	r.started = true
	send, recv := r.need()
	e.flight.Begin(uint64(c.id), r.seq, r.b.Request, max(send, recv))
	c.counters.Runs++
	done := 0
	if waits && r.straight != nil && r.straight.free(c) {
		if done = r.through(ctx); done == len(r.straight.steps) {
			r.finished, r.err = true, nil
			c.counters.Straight++
			e.flight.End(uint64(c.id), r.seq, 0, false)
			return true
		}
	}
	r.reopen()
	r.pass, r.moved, r.since, r.reported = 0, true, time.Time{}, 0
	r.startedAt = 0
	clear(r.came)
	clear(r.told)
	if e.world.config.Hooks.Run != nil {
		r.startedAt = e.now()
	}
	e.runs = append(e.runs, r)
	c.runs = append(c.runs, r)
	c.missing(r)
	r.beginPass()
	if done > 0 {
		r.takeOver(done)
	}
	if r.left > 0 && !r.finished && !e.driving {
		e.takeWheel(ctx, &r.ending)
		r.firstSteps()
		e.driving = false
	}
	return false
}

// firstSteps does what can be done at once.
func (r *Run) firstSteps() {
	e, returned := r.comm.e, false
	defer func() {
		if p := recover(); p != nil {
			fatal(p)
		}
		if e.steering(&returned) { // in a start, which doesn't return either
			r.comm.starting = false
			e.handOver()
			e.mu.Unlock()
		}
	}()
	r.advance()
	returned = true
}

func (r *Run) startable() error {
	if c := r.comm; c.late(c.seq) {
		return fmt.Errorf("%w: %w", ErrBroken, c.limit.err)
	}
	if r.started && !r.finished {
		return fmt.Errorf("the run before has not ended: %w", ErrBusy)
	}
	if send, recv := r.need(); send > 0 && r.b.Send == nil || recv > 0 && r.b.Recv == nil {
		return errors.New("no buffers are bound")
	}
	return nil
}

// beginPass loads the next program and makes its first steps ready.
func (r *Run) beginPass() {
	for {
		switch n := int64(r.pass); {
		case n < r.b.Passes:
			r.prog = r.b.Whole
		case n == r.b.Passes && r.b.Rest != nil:
			r.prog = r.b.Rest
		default:
			if !r.comm.disagreed(r) {
				r.finish(nil)
			}
			return
		}
		if r.prog.Len() > 0 {
			break
		}
		r.pass++
	}
	r.load(r.prog, int64(r.pass)*r.b.Stride)
	r.left = len(r.steps)
	clear(r.flags[:r.left])
	copy(r.pending, r.prog.InDegree())
	r.ready, r.fresh, r.waiting = r.ready[:0], 0, r.waiting[:0]
	order := r.prog.Order()
	for i := len(order) - 1; i >= 0; i-- {
		if id := order[i]; r.pending[id] == 0 {
			r.ready = append(r.ready, id)
		}
	}
	r.comm.catchUp(r)
}

// load makes a program the one that runs, base bytes into the buffers.
func (r *Run) load(prog *submodules.Program, base int64) {
	r.prog, r.steps, r.lead = prog, prog.Steps(), r.leads[0]
	if prog == r.b.Rest {
		r.lead = r.leads[1]
	}
	// A rank that has no part of a buffer may have bound one of no bytes.
	r.memory[tasks.Recv] = r.b.Recv[min(base, int64(len(r.b.Recv))):]
	r.memory[tasks.Send] = r.b.Send[min(base, int64(len(r.b.Send))):]
}

// end completes a step and makes ready what waited for it only.
func (r *Run) end(id dag.ID) {
	r.fresh = 0
	if r.begun != nil {
		r.trace(id)
	}
	if invariants.On && (r.flags[id]&ended != 0 || r.left <= 0 || r.pending[id] != 0) {
		panic(fmt.Sprintf("executor: %s ends twice or before what it waits for", r.prog.Label(&r.steps[id])))
	}
	if r.b.Ended != nil {
		r.b.Ended(id)
	}
	r.flags[id] |= ended
	r.moved = true
	next := r.prog.Succ(id)
	for i := len(next) - 1; i >= 0; i-- {
		n := next[i]
		r.pending[n]--
		if r.pending[n] == 0 {
			r.ready = append(r.ready, n)
		}
	}
	r.left--
}

// finish ends the run and tells who waits.
func (r *Run) finish(err error) {
	e := r.comm.e
	for i, other := range e.runs {
		if other == r {
			last := len(e.runs) - 1
			e.runs[i], e.runs[last] = e.runs[last], nil
			e.runs = e.runs[:last]
			break
		}
	}
	if i := slices.Index(r.comm.runs, r); i >= 0 {
		r.comm.runs = slices.Delete(r.comm.runs, i, i+1)
	}
	r.ready, r.fresh = r.ready[:0], 0
	e.flight.End(uint64(r.comm.id), r.seq, r.pass, err != nil)
	if err != nil {
		r.discard()
		e.forgetLandings(r)
	}
	if hook := e.world.config.Hooks.Run; hook != nil && err == nil {
		hook(trace.Event{Rank: r.comm.me, Run: r.seq, Step: trace.WholeRun, Begin: r.startedAt, End: e.now()})
	}
	r.close(err)
	if r.comm.limit != nil && r.comm.broken == nil {
		r.comm.endLate()
	}
}

// discard lets go of what came for steps that will never run.
func (r *Run) discard() {
	for i := range r.steps {
		s := &r.steps[i]
		if s.Kind == submodules.RecvStep && r.flags[i]&(arrived|ended) == arrived {
			r.comm.e.waste(r.peer(s), wire.Eager, len(r.comm.e.store.get(r.kept[i])))
			r.comm.e.store.drop(r.kept[i])
		}
	}
}

// span is the memory a step's operand names.
func (r *Run) span(s tasks.Span) []byte {
	if s.Region == tasks.Peer {
		return wire.BytesAt(r.addr[s.Ref], s.Off, s.Len)
	}
	return r.memory[s.Region][s.Off : s.Off+s.Len]
}

// address is where a span begins, nil for an empty one.
func (r *Run) address(s tasks.Span) unsafe.Pointer {
	if s.Len == 0 {
		return nil
	}
	return unsafe.Pointer(&r.span(s)[0])
}

// peer is the rank of the world at the other end of a step's message.
func (r *Run) peer(s *submodules.Step) levels.Rank {
	return r.comm.ranks[r.prog.Peers[s.Peer].Rank]
}
