package submodules

import (
	"fmt"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// StepKind is the primitive a step is. The zero value is invalid.
type StepKind uint8

// The primitives.
const (
	_          StepKind = iota
	SendStep            // A to the peer's matching recv
	RecvStep            // from the peer's matching send into Dst
	CopyStep            // A into Dst
	ReduceStep          // Dst = A ⊕ B
	ShareStep           // make A readable for the node: nothing if it is readable in place, else A into Dst
	NotifyStep          // tell the peer's matching await, and expose A to it if set
	AwaitStep           // until the peer's matching notify
	JoinStep            // nothing: many steps end here before many begin
	maxStep
)

var stepNames = [maxStep]string{
	SendStep: "send", RecvStep: "recv", CopyStep: "copy", ReduceStep: "reduce",
	ShareStep:  "share",
	NotifyStep: "notify", AwaitStep: "await", JoinStep: "join",
}

// String is the primitive's name.
func (k StepKind) String() string {
	if k == 0 || k >= maxStep {
		return fmt.Sprintf("StepKind(%d)", uint8(k))
	}
	return stepNames[k]
}

// Outgoing reports whether a step of this kind speaks to its peer.
func (k StepKind) Outgoing() bool { return k == SendStep || k == NotifyStep }

// Incoming reports whether a step of this kind waits for its peer.
func (k StepKind) Incoming() bool { return k == RecvStep || k == AwaitStep }

// Step is one primitive of one rank. A step that speaks and the one that hears it have the same
// edge number: the place among all messages from the one rank to the other in this program.
type Step struct {
	Kind StepKind
	Task dag.ID // in the rank's task graph
	Peer int32  // index into [Program.Peers]; -1 when there is none
	Edge int32
	Dst  tasks.Span
	A, B tasks.Span
}

// Len is the bytes the step works on.
func (s *Step) Len() int64 {
	if s.Kind == RecvStep {
		return s.Dst.Len
	}
	return s.A.Len
}

// Peer is one of the ranks that a program talks to. Edges count the messages of each direction
// from 0.
type Peer struct {
	Rank levels.Rank
	Out  []dag.ID // by edge: this rank's sends and notifies
	In   []dag.ID // by edge: this rank's recvs and awaits
}
