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
	Backup  int64 // bytes of shared memory for what its peers can't read where it lies
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
	task := p.Task(s).String()
	me := fmt.Sprintf("r%d", p.Rank)
	peer := ""
	if s.Peer >= 0 {
		peer = fmt.Sprintf("r%d", p.Peers[s.Peer].Rank)
	}
	switch {
	case s.Kind == JoinStep:
		return fmt.Sprintf("%s join %s", task, me)
	case s.Kind == NotifyStep:
		return fmt.Sprintf("%s notify %s>%s", task, me, peer)
	case s.Kind == AwaitStep:
		return fmt.Sprintf("%s await %s>%s", task, peer, me)
	case s.Kind == SendStep:
		return fmt.Sprintf("%s send %s>%s %s", task, me, peer, tasks.FormatBytes(s.Len()))
	case s.Kind == RecvStep:
		return fmt.Sprintf("%s recv %s>%s %s", task, peer, me, tasks.FormatBytes(s.Len()))
	}
	return fmt.Sprintf("%s %v %s %s", task, s.Kind, me, tasks.FormatBytes(s.Len()))
}

// Describe tells what a step is to those who watch runs: it makes a program a
// trace.Source.
func (p *Program) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	s := p.Step(dag.ID(step))
	t := p.Task(s)
	return t.String(), p.Label(s), s.Kind.String(), t.Kind.Symbol, s.Len()
}
