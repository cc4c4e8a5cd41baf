package submodules

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// slotAlign keeps slots and scratch pieces on cache lines of their own.
const slotAlign = 64

// None in place of a step to run after is no step at all.
const None dag.ID = -1

// Emitter takes the steps of one task. Each method adds a step after the named steps of the same
// task. Without any but [None] it runs as soon as the tasks before allow. A submodule must emit
// steps in the same order on both ends of a pair of ranks: the n-th step that speaks to a peer
// meets the peer's n-th step that hears this rank. Naming a step of another task panics.
type Emitter struct {
	graph dag.Graph[Step]
	prog  *Program

	task    dag.ID
	entry   []dag.ID // the steps before those without predecessors in the task
	data    []dag.ID // the part of entry that brings the task's input
	first   dag.ID   // of the task's steps
	ready   []dag.ID
	early   bool     // ready holds all of it, even if it is empty
	inner   []bool   // by step of the task, from first: has a successor in it
	results []dag.ID // where end puts its results, for all tasks of the program
	scratch area
	slots   area
	backup  area
}

// Send adds sending src to a rank's matching Recv.
func (e *Emitter) Send(to levels.Rank, src tasks.Span, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: SendStep, A: src}, to, after)
}

// Recv adds receiving dst from a rank's matching Send of equal length.
func (e *Emitter) Recv(from levels.Rank, dst tasks.Span, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: RecvStep, Dst: dst}, from, after)
}

// Copy adds dst = src.
func (e *Emitter) Copy(dst, src tasks.Span, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: CopyStep, Dst: dst, A: src}, -1, after)
}

// Reduce adds dst = a ⊕ b, a from the lower ranks. dst may be a or b.
func (e *Emitter) Reduce(dst, a, b tasks.Span, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: ReduceStep, Dst: dst, A: a, B: b}, -1, after)
}

// Notify adds telling a rank's matching Await to go on. Exposed, if not zero, is this rank's
// memory that the peer may touch from then on.
func (e *Emitter) Notify(to levels.Rank, exposed tasks.Span, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: NotifyStep, A: exposed}, to, after)
}

// Share adds making src, in any region, readable for the ranks of the node. If their processes
// can't read it, it is copied to the backup span returned, memory of the task. Both results go
// to [Emitter.Expose].
func (e *Emitter) Share(src tasks.Span, after ...dag.ID) (dag.ID, tasks.Span) {
	backup := e.backup.take(tasks.Backup, src.Len)
	return e.add(Step{Kind: ShareStep, Dst: backup, A: src}, -1, after), backup
}

// Expose is Notify for shared memory: src, or its backup if src can't be read.
func (e *Emitter) Expose(to levels.Rank, src, backup tasks.Span, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: NotifyStep, A: src, B: backup}, to, after)
}

// Await adds waiting for a rank's matching Notify.
func (e *Emitter) Await(from levels.Rank, after ...dag.ID) dag.ID {
	return e.add(Step{Kind: AwaitStep}, from, after)
}

// Join adds an empty step after all of those named: many steps end before many begin. Joining
// one step is this step, joining none is [None].
func (e *Emitter) Join(after ...dag.ID) dag.ID {
	var only dag.ID = None
	steps := 0
	for _, a := range after {
		if a != None {
			only = a
			steps++
		}
	}
	if steps < 2 {
		return only
	}
	return e.add(Step{Kind: JoinStep}, -1, after)
}

// Exposed is n bytes from off of the memory that the notify of an await exposes.
func Exposed(await dag.ID, off, n int64) tasks.Span {
	return tasks.Span{Region: tasks.Peer, Ref: int32(await), Off: off, Len: n}
}

// Scratch is n bytes of private memory, the task's own until it ends.
func (e *Emitter) Scratch(n int64) tasks.Span { return e.scratch.take(tasks.Scratch, n) }

// Slot is n bytes of this rank's shared memory, the task's own until it ends.
func (e *Emitter) Slot(n int64) tasks.Span { return e.slots.take(tasks.Slot, n) }

// Ready names steps after which the task's result is in Dst on this rank. The tasks with this
// result as input wait for these only, not for the task's other steps. A task without such
// steps, or with [None] alone, is ready when it ends.
func (e *Emitter) Ready(steps ...dag.ID) {
	for _, s := range steps {
		if s != None {
			e.ready = append(e.ready, s)
		}
	}
}

// ReadyAtStart declares that this rank has the result already, as the root of a bcast does.
// Later steps on it wait neither for this task nor for its slots.
func (e *Emitter) ReadyAtStart() {
	if !e.early {
		e.ready = append(e.ready, e.data...)
	}
	e.early = true
}

func (e *Emitter) add(s Step, peer levels.Rank, after []dag.ID) dag.ID {
	s.Task, s.Peer = e.task, -1
	id := dag.ID(e.graph.Len())
	if peer >= 0 {
		s.Peer = e.prog.peer(peer)
		p := &e.prog.Peers[s.Peer]
		if s.Kind.Outgoing() {
			s.Edge = int32(len(p.Out))
			p.Out = append(p.Out, id)
		} else {
			s.Edge = int32(len(p.In))
			p.In = append(p.In, id)
		}
	}
	e.graph.Add(s)
	e.inner = append(e.inner, false)
	e.follow(id, after)
	return id
}

// follow makes a step run after others of its task, or else after the entry.
func (e *Emitter) follow(id dag.ID, after []dag.ID) {
	entry := true
	for _, a := range after {
		if a == None {
			continue
		}
		if a < e.first || a >= id {
			panic(fmt.Sprintf("submodules: step %d of %v runs after step %d, which is none of the task's earlier steps",
				id-e.first, e.prog.Tasks.Node(e.task), a-e.first))
		}
		e.graph.Connect(a, id, 0)
		e.inner[a-e.first] = true
		entry = false
	}
	if !entry {
		return
	}
	for _, a := range e.entry {
		e.graph.Connect(a, id, 0)
	}
}

// reset drops all steps, for a program with so many slots. Their memory is used again.
func (e *Emitter) reset(p *Program, slots int) {
	e.prog, e.results = p, e.results[:0]
	e.graph.Reset()
	e.scratch.reset(slots)
	e.slots.reset(slots)
	e.backup.reset(slots)
}

// begin opens a task behind the given steps, the first ones for its data.
func (e *Emitter) begin(task dag.ID, entry []dag.ID, data int) {
	e.task, e.entry, e.data = task, append(e.entry[:0], entry...), append(e.data[:0], entry[:data]...)
	e.ready, e.early, e.inner = e.ready[:0], false, e.inner[:0]
	if len(entry) > 2 {
		// One join keeps the edges from growing as ends × beginnings.
		join := e.graph.Add(Step{Kind: JoinStep, Task: task, Peer: -1})
		for _, a := range entry {
			e.graph.Connect(a, join, 0)
		}
		e.entry = append(e.entry[:0], join)
	}
	e.first = dag.ID(e.graph.Len())
}

// appendSinks appends the task's steps so far without successors in it.
func (e *Emitter) appendSinks(all []dag.ID) []dag.ID {
	for i, inner := range e.inner {
		if !inner {
			all = append(all, e.first+dag.ID(i))
		}
	}
	return all
}

// end closes the task. It returns the last steps of its result, and those of all its work.
func (e *Emitter) end() (ready, done []dag.ID) {
	from := len(e.results)
	e.results = e.appendSinks(e.results)
	if len(e.inner) == 0 {
		e.results = append(e.results, e.entry...) // a task without steps passes its entry on
	}
	done = e.results[from:len(e.results):len(e.results)]
	if len(e.ready) == 0 && !e.early {
		return done, done
	}
	from = len(e.results)
	e.results = append(e.results, e.ready...)
	return e.results[from:len(e.results):len(e.results)], done
}

// peer finds or adds a rank's index among the program's peers.
func (p *Program) peer(r levels.Rank) int32 {
	if p.peerOf[r] < 0 {
		p.peerOf[r] = int32(len(p.Peers))
		p.Peers = slices.Grow(p.Peers, 1)[:len(p.Peers)+1]
		last := &p.Peers[len(p.Peers)-1]
		*last = Peer{Rank: r, In: last.In[:0], Out: last.Out[:0]} // in memory of an earlier program
	}
	return p.peerOf[r]
}

// area hands out the memory of one region. Each phase of the pipeline has a window of slots, and
// segments take them in turn. A task reuses the memory of the task before it in its slot. If it
// needs more it takes more: roots may move on.
type area struct {
	size  int64          // of the whole region so far
	slots [][]tasks.Span // the pieces of each slot, by phase and turn
	open  int            // the open task's slot
	next  int            // the number of its next piece
}

// reset takes everything back, for so many slots.
func (a *area) reset(slots int) {
	*a = area{slots: slices.Grow(a.slots[:0], slots)[:slots]}
	for i := range a.slots {
		a.slots[i] = a.slots[i][:0]
	}
}

func (a *area) begin(slot int) { a.open, a.next = slot, 0 }

func (a *area) take(r tasks.Region, n int64) tasks.Span {
	pieces := &a.slots[a.open]
	for a.next < len(*pieces) {
		s := (*pieces)[a.next]
		if a.next++; s.Len >= n {
			return s.Cut(0, n)
		}
	}
	s := tasks.Span{Region: r, Off: a.size, Len: (n + slotAlign - 1) / slotAlign * slotAlign}
	a.size += s.Len
	*pieces = append(*pieces, s)
	a.next++
	return s.Cut(0, n)
}
