package sim

import (
	"iter"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// form is a program without the names of its ranks and without memory, in flat arrays. Ranks of
// equal role share one.
type form struct {
	steps []step // and one more: its next is the length of all successors
	succ  []int32
	first []int32 // steps without predecessors, in the order of becoming ready
	in    edges   // steps with a message from a peer
	out   edges   // steps with a message to a peer
	tasks []taskName
}

// nothing is the form of a rank without steps.
var nothing = &form{steps: make([]step, 1)}

// step is one step of a form.
type step struct {
	bytes   int64
	peer    int32 // index into the seat's peers; -1: there is none
	edge    int32 // place among the messages with the peer
	task    int32
	next    int32 // index of its first successor in succ
	pending int32 // predecessors
	kind    submodules.StepKind
	reads   uint8 // operands in the memory of other ranks
}

// edges are the steps of messages, by peer and edge.
type edges struct {
	start []int32 // by peer, and one more
	steps []int32
}

// at returns the step of a peer's edge.
func (e *edges) at(peer, edge int32) int32 { return e.steps[e.start[peer]+edge] }

// count returns how many edges a peer has.
func (e *edges) count(peer int32) int { return int(e.start[peer+1] - e.start[peer]) }

func (e *edges) add(ids []dag.ID) {
	if len(e.start) == 0 {
		e.start = append(e.start, 0)
	}
	e.steps = appendIDs(e.steps, ids)
	e.start = append(e.start, int32(len(e.steps)))
}

// taskName is the name of a task of a rank.
type taskName struct {
	kind    tasks.Kind
	segment int32
}

// String is the task's label: ib#3.
func (t taskName) String() string { return tasks.Task{Kind: t.kind, Segment: t.segment}.String() }

// newForm strips a program to its form.
func newForm(p *submodules.Program) *form {
	n := p.Len()
	f := &form{steps: make([]step, 0, n+1), tasks: make([]taskName, 0, p.Tasks.Len())}
	edgeCount := 0
	for _, d := range p.InDegree() {
		edgeCount += int(d)
	}
	f.succ = make([]int32, 0, edgeCount)
	for id, s := range p.Steps() {
		bytes := s.Len()
		if s.Kind == submodules.NotifyStep {
			bytes = 0 // exposed bytes do not travel
		}
		f.steps = append(f.steps, step{
			bytes: bytes, peer: s.Peer, edge: s.Edge, task: int32(s.Task), next: int32(len(f.succ)),
			pending: p.InDegree()[id], kind: s.Kind, reads: peerOperands(&s),
		})
		f.succ = appendIDs(f.succ, p.Succ(dag.ID(id)))
	}
	f.steps = append(f.steps, step{next: int32(len(f.succ))})
	order := p.Order()
	for i := len(order) - 1; i >= 0; i-- {
		if f.steps[order[i]].pending == 0 {
			f.first = append(f.first, int32(order[i]))
		}
	}
	for _, peer := range p.Peers {
		f.in.add(peer.In)
		f.out.add(peer.Out)
	}
	for _, t := range p.Tasks.Nodes() {
		f.tasks = append(f.tasks, taskName{t.Kind, t.Segment})
	}
	return f
}

// peerOperands counts a step's operands in the memory of other ranks.
func peerOperands(s *submodules.Step) (n uint8) {
	for _, span := range [...]*tasks.Span{&s.A, &s.B} {
		if span.Region == tasks.Peer && (s.Kind == submodules.CopyStep || s.Kind == submodules.ReduceStep) {
			n++
		}
	}
	return n
}

func appendIDs(to []int32, ids []dag.ID) []int32 {
	for _, id := range ids {
		to = append(to, int32(id))
	}
	return to
}

// len returns how many steps the form has.
func (f *form) len() int { return len(f.steps) - 1 }

// successors returns the successors of a step.
func (f *form) successors(id int32) []int32 { return f.succ[f.steps[id].next:f.steps[id+1].next] }

// sizes yields the bytes of a peer's messages, in the order of their edges.
func (f *form) sizes(e *edges, peer int32) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, id := range e.steps[e.start[peer]:e.start[peer+1]] {
			if !yield(f.steps[id].bytes) {
				return
			}
		}
	}
}

// store holds each form once.
type store struct {
	byHash map[uint64][]*form
	count  int
}

func newStore() *store { return &store{byHash: map[uint64][]*form{}} }

// intern returns the form that equals f, f itself if it is the first.
func (s *store) intern(f *form) *form {
	key := f.hash()
	for _, g := range s.byHash[key] {
		if f.equal(g) {
			return g
		}
	}
	s.byHash[key] = append(s.byHash[key], f)
	s.count++
	return f
}

// hash returns a number, equal for equal forms: FNV-1a over words of the steps.
func (f *form) hash() uint64 {
	h := uint64(14695981039346656037)
	for i := range f.steps {
		s := &f.steps[i]
		for _, word := range [...]uint64{uint64(s.bytes), uint64(s.kind), pairKey(s.peer, s.edge), pairKey(s.task, s.next)} {
			h = (h ^ word) * 1099511628211
		}
	}
	return h
}

func (f *form) equal(g *form) bool {
	return slices.Equal(f.steps, g.steps) && slices.Equal(f.succ, g.succ) && slices.Equal(f.first, g.first) &&
		slices.Equal(f.in.start, g.in.start) && slices.Equal(f.in.steps, g.in.steps) &&
		slices.Equal(f.out.start, g.out.start) && slices.Equal(f.out.steps, g.out.steps) && slices.Equal(f.tasks, g.tasks)
}

func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// sized returns a slice of n elements, s if it has room.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
