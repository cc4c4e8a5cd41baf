package executor

import (
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/kernel"
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
	// Urgency orders runs that could go on: the largest goes first. Of equal ones it is the first
	// start. Ranks may differ in it.
	Urgency int32
	// Request is for errors. Where those of two ranks read the same, the rest says what
	// differs; all of it goes into the digest.
	Request, Operation, Plan, Layout string
	// Tally, if not nil, counts the calls. It is of the same rank. Trips is how often the busiest link
	// carries the larger buffer, for its [Calls].Rate; 0: that is not told.
	Tally *Tally
	Trips float64
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
	b        Binding                // Send and Recv nil: let go of
	call     *description           // for the other ranks
	digest   uint32                 // b.Digest
	needed   [2]int64               // least lengths of b.Send and b.Recv, bytes
	leads    [2][]flow.Lead         // of b.Whole and of b.Rest, by their peers; nil: none
	straight *straight              // nil: the engine walks the graph
	slots    []byte                 // of its own, see slotRing
	user     func(dst, a, b []byte) // combineApart; nil unless b.User
	seal     *submodules.Program    // the barrier at the end of each call; nil: none
}

// running is a call on its way and, in the slices by step, its pass. The engine's lock
// guards it. Slices are made by Bind, for the longest program.
type running struct {
	started bool   // ever
	seq     uint32 // of the call, among those on the communicator
	pass    uint32 // from 0 on; b.Passes: the rest; one more: the seal
	parked  bool   // its data is complete, and it waits for that of an earlier call

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

	begun     []int64 // by step: ns on the clock of traces; nil unless this call's steps are traced
	stamps    []int64 // the memory of begun; nil unless calls may be traced
	startedAt int64   // ns on the clock of traces; 0 unless calls are traced
	sample            // of a call that the rank keeps in its trace
	timing            // of a call that its tally has the time of
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

// exposure is what a notify says about memory that lies in another process.
type exposure struct {
	remote uint64 // its address there; 0 if this process can address it
	age    uint64 // of the owner when it said so
}

// chunk is how much is copied or reduced before the link is looked at again:
// tens of microseconds.
const chunk = 256 << 10

// neededBuffers returns the least lengths of the caller's buffers, bytes.
func (r *Run) neededBuffers() (send, recv int64) { return r.needed[0], r.needed[1] }

// loadPass makes a program the one that runs, base bytes into the buffers.
func (r *Run) loadPass(prog *submodules.Program, base int64) {
	r.prog, r.steps, r.lead = prog, prog.Steps(), r.leads[0]
	switch prog {
	case r.b.Rest:
		r.lead = r.leads[1]
	case r.seal:
		r.lead = nil
	}
	// A rank that has no part of a buffer may have bound one of no bytes.
	r.memory[tasks.Recv] = r.b.Recv[min(base, int64(len(r.b.Recv))):]
	r.memory[tasks.Send] = r.b.Send[min(base, int64(len(r.b.Send))):]
}

// span returns the memory that a step's operand names.
func (r *Run) span(s tasks.Span) []byte {
	if s.Region == tasks.Peer {
		return wire.BytesAt(r.addr[s.Ref], s.Off, s.Len)
	}
	return r.memory[s.Region][s.Off : s.Off+s.Len]
}

// address returns where a span begins, nil for an empty one.
func (r *Run) address(s tasks.Span) unsafe.Pointer {
	if s.Len == 0 {
		return nil
	}
	return unsafe.Pointer(&r.span(s)[0])
}

// peerOf returns the rank of the world at the other end of a step's message.
func (r *Run) peerOf(s *submodules.Step) levels.Rank {
	return r.comm.ranks[r.prog.Peers[s.Peer].Rank]
}

// message returns a message of a step to its peer.
func (r *Run) message(k wire.Kind, s *submodules.Step) wire.Message {
	return wire.Message{
		Kind: k, Comm: r.comm.id, Seq: r.seq, Pass: r.pass, Edge: s.Edge, Digest: r.digest, Size: s.Len(), Urgency: r.b.Urgency,
	}
}

// isStopped reports whether the run must not go on: nothing of it is executed, and
// nothing written into its memory.
func (r *Run) isStopped() bool { return r.comm.broken != nil || r.comm.isLate(r.seq) }
