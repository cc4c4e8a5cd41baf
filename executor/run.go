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

// Binding is the input of a run: programs and the memory they work on.
type Binding struct {
	// Compiled is this rank's part. Ranks compare its digest.
	submodules.Compiled
	// Send and Recv are the caller's buffers. They must stay where they are and
	// must not be touched between Start and the end of the run.
	Send, Recv []byte
	// Kernel combines elements; nil if the programs don't reduce.
	Kernel kernel.Func
	// Scale, if not nil, writes this rank's input, src, to dst as Kernel needs it, when a call begins
	// before its first step; dst may be src. The input is Send, or Recv if Send is nil. Programs with their
	// input in Recv find it there; others read scratch in place of Send.
	Scale func(dst, src []byte)
	// User says that Kernel calls a caller's function, which may do anything: it gets a goroutine of
	// the call, without the engine's lock. The call ends after it has returned.
	User bool
	// Urgency orders runs ready to go on: the largest goes first, among equals the first start.
	// Ranks may differ in it.
	Urgency int32
	// Request is for errors. Where those of two ranks read the same, the rest shows the difference;
	// all of it goes into the digest.
	Request, Operation, Plan, Layout string
	// Reasons, if not nil, returns lines that say why Plan was chosen, for a trace.
	Reasons func() []string
	// Borrows says that each call borrows shared memory from the rank, which takes it at its begin.
	// Else the run has memory of its own from Bind on.
	Borrows bool
	// Tally, if not nil, counts the calls. It is of the same rank. Trips is how often the busiest
	// link carries the larger buffer, for its [Calls].Rate; 0: no rate.
	Tally *Tally
	Trips float64
	// Ended, if not nil, is called at the end of each step, with the engine's lock held: it must be
	// short and must not call back.
	Ended func(step dag.ID)
}

// Run is a bound program, to be started any number of times, one after the other. Its memory is its
// own from Bind on, but for shared memory that it borrows; running allocates nothing.
type Run struct {
	ending
	bound
	running
	operation
	watched
}

// bound is the result of Bind. Only Rebind changes it, between two calls.
type bound struct {
	b                    Binding             // Send and Recv nil: not bound now
	call                 *description        // for the other ranks
	digest               uint32              // b.Digest
	leastSend, leastRecv int64               // lengths of b.Send and b.Recv, bytes
	leads                [2][]flow.Lead      // of b.Whole and of b.Rest, by their peers; nil: none
	straight             *straight           // nil: the engine walks the graph
	slots, backup        int64               // bytes of shared memory of a call
	own                  []byte              // the memory for these; nil if each call borrows it
	scaled               []byte              // what the programs read as Send; nil: b.Send
	seal                 *submodules.Program // the barrier at the end of each call; nil: none
}

// running is a call on its way and, in the slices by step, its pass. The engine's lock guards it.
// Bind makes the slices, for the longest program.
type running struct {
	started bool   // ever
	seq     uint32 // of the call, among those on the communicator
	pass    uint32 // from 0 on; b.Passes: the rest; one more: the seal
	parked  bool   // its data is complete, and it waits for an earlier call's

	prog      *submodules.Program
	steps     []submodules.Step  // of prog
	lead      []flow.Lead        // of prog, by its peers; nil: none
	memory    [tasks.Peer][]byte // by region; Send and Recv from this pass's bytes on
	loan      *loan              // of shared memory; nil: none
	stepsLeft int                // steps not ended; 0 <= stepsLeft <= len(steps)

	pending    []int32          // by step: predecessors not ended
	flags      []flag           // by step
	addr       []unsafe.Pointer // by step: the address in a send's credit or an await's notify; nil: none yet
	exposed    []exposure       // by step, of awaits
	blockOf    []int32          // by step, of recvs arrived and not reached: block of the payload
	ready      []dag.ID         // steps able to run now; last in, first out, except freshSends
	freshSends int              // sends on top of ready with credit since the last advance: first in, first out
	waiting    []dag.ID         // eager sends without budget, with credit asked for
}

// watched is a call's state for stall reports, probes and traces. The engine's lock guards it.
type watched struct {
	present       rankSet       // ranks of the communicator known to be, or to have been, in this call
	notified      rankSet       // those told that this rank is in it
	hasMoved      bool          // a step ended since the last tick
	since         time.Time     // time of the last tick with a step ended before; zero: there was none
	probed        bool          // since then, every awaited peer was sent a probe
	inquiredAfter time.Duration // time from since to the last inquiry about absent ranks through the control plane; 0: none yet
	reportAfter   time.Duration // time from since to the next stall report; 0 or less: never

	begun     []int64 // by step: ns on the clock of traces; nil unless this call's steps are traced
	stamps    []int64 // the memory of begun; nil unless calls may be traced
	startedAt int64   // ns on the clock of traces; 0 unless calls are traced
	sample            // its place in the rank's trace
	timing            // its time for the tally
}

// flag is a set of events of a step in this pass.
type flag uint8

const (
	reached  flag = 1 << iota // its predecessors have ended
	arrived                   // its message is here
	credited                  // its recv is ready
	wanted                    // the sender of its message has asked for credit
	leaving                   // its message leaves without credit
	ended
)

// exposure is a notify's word about memory in another process.
type exposure struct {
	remote uint64 // its address there; 0 if this process can address it
	age    uint64 // of the owner at the time of the notify
}

// chunk is the number of bytes copied or reduced between two polls of the link: tens of
// microseconds.
const chunk = 256 << 10

// loadPass makes prog the running program, base bytes into the bound buffers.
func (p *running) loadPass(from *bound, prog *submodules.Program, base int64) {
	p.prog, p.steps, p.lead = prog, prog.Steps(), from.leads[0]
	switch prog {
	case from.b.Rest:
		p.lead = from.leads[1]
	case from.seal:
		p.lead = nil
	}
	// A rank without a part of a buffer may have bound an empty one.
	p.memory[tasks.Recv] = from.b.Recv[min(base, int64(len(from.b.Recv))):]
	send := from.b.Send
	if from.scaled != nil {
		send = from.scaled
	}
	p.memory[tasks.Send] = send[min(base, int64(len(send))):]
}

// span returns the memory of a step's operand.
func (p *running) span(s tasks.Span) []byte {
	if s.Region == tasks.Peer {
		return wire.BytesAt(p.addr[s.Ref], s.Off, s.Len)
	}
	return p.memory[s.Region][s.Off : s.Off+s.Len]
}

// address returns the begin of a span, nil for an empty one.
func (p *running) address(s tasks.Span) unsafe.Pointer {
	if s.Len == 0 {
		return nil
	}
	return unsafe.Pointer(&p.span(s)[0])
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

// isStopped reports whether the run must not go on: none of its steps is executed, and nothing
// written into its memory.
func (r *Run) isStopped() bool { return r.comm.broken != nil || r.comm.isBeyondLimit(r.seq) }
