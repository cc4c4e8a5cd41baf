package submodules

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Program is the frozen step graph of one rank. It is never written to after
// [Compile] and may run any number of times.
type Program struct {
	*dag.Frozen
	Rank    levels.Rank
	Size    int // ranks of the communicator
	Request tasks.Request
	Plan    tasks.Plan
	Tasks   *tasks.Graph
	Peers   []Peer
	Scratch int64 // bytes of private scratch
	Slots   int64 // bytes of slots in the node's shared memory
	Backup  int64 // bytes of shared memory for data that its peers can't read in place
	steps   []Step
	peerOf  []int32 // by rank, index into Peers or -1
}

// Steps lists the steps by id. The slice belongs to the program.
func (p *Program) Steps() []Step { return p.steps }

// Step is one step.
func (p *Program) Step(id dag.ID) *Step { return &p.steps[id] }

// PeerIndex finds a rank among the program's peers, -1 if it isn't one.
func (p *Program) PeerIndex(r levels.Rank) int32 {
	if r < 0 || int(r) >= len(p.peerOf) {
		return -1
	}
	return p.peerOf[r]
}

// Task is the task a step belongs to.
func (p *Program) Task(s *Step) *tasks.Task { return p.Tasks.Node(s.Task) }

// Label is the step's label: ib#3 send r0>r4 64KiB.
func (p *Program) Label(s *Step) string {
	peer := levels.Rank(-1)
	if s.Peer >= 0 {
		peer = p.Peers[s.Peer].Rank
	}
	return StepLabel(p.Task(s).String(), s.Kind, p.Rank, peer, s.Len())
}

// StepLabel returns the label of a step: its task, its kind, the rank and the peer, if it has
// one, and the bytes.
func StepLabel(task string, k StepKind, rank, peer levels.Rank, bytes int64) string {
	me := fmt.Sprintf("r%d", rank)
	from, to := fmt.Sprintf("r%d", peer), me
	if k.Outgoing() {
		from, to = to, from
	}
	switch k {
	case JoinStep:
		return fmt.Sprintf("%s join %s", task, me)
	case NotifyStep, AwaitStep:
		return fmt.Sprintf("%s %v %s>%s", task, k, from, to)
	case SendStep, RecvStep:
		return fmt.Sprintf("%s %v %s>%s %s", task, k, from, to, tasks.FormatBytes(bytes))
	}
	return fmt.Sprintf("%s %v %s %s", task, k, me, tasks.FormatBytes(bytes))
}

// Describe names a step for those who watch runs: it makes a program a trace.Source.
func (p *Program) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	s := p.Step(dag.ID(step))
	t := p.Task(s)
	return t.String(), p.Label(s), s.Kind.String(), t.Kind.Symbol, s.Len()
}
