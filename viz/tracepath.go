package viz

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// The causes of a path's pieces that a trace can tell apart.
const (
	causeMessage = "message" // from when both ends could go on to the end of the step, or as long as the other end made it wait
	causeBusy    = "engine"  // between two steps of a rank: its engine had other things to do
)

// causeOf returns the cause of a piece in which a step was on its way.
func causeOf(k submodules.StepKind) string {
	switch k {
	case submodules.CopyStep, submodules.ShareStep:
		return "copying"
	case submodules.ReduceStep:
		return "combining"
	case submodules.SendStep, submodules.RecvStep, submodules.AwaitStep:
		return causeMessage
	}
	return "handling"
}

// TracePath returns the critical path of a traced run: the chain of steps that decided
// when the last one ended. It leads back from that one. What a step waited for is whatever
// was there last: the step before it in the program, the other end of its message, or
// what its rank did before. Events must be those of one run on all ranks, and their
// sources compiled programs; if they aren't there is no path.
func TracePath(events []trace.Event) []PathPiece {
	t := newTraced(events)
	if t == nil {
		return nil
	}
	at := 0
	for i := range t.events {
		if t.events[i].End > t.events[at].End {
			at = i
		}
	}
	var path []PathPiece
	end, seen := t.events[at].End, make([]bool, len(t.events))
	for at >= 0 && !seen[at] {
		seen[at] = true
		e := &t.events[at]
		// Seen from the other end of a message the step is over when it begins.
		if from, when := t.otherEnd(at); from >= 0 && when < end && !seen[from] {
			path = append(path, t.piece(at, causeMessage, when, end))
			at, end = from, when
			continue
		}
		if e.Begin < end {
			path = append(path, t.piece(at, causeOf(t.progs[at].Step(dag.ID(e.Step)).Kind), e.Begin, end))
			end = e.Begin
		}
		before := t.before(at, end, seen)
		if before >= 0 && t.events[before].End < end {
			path = append(path, t.piece(at, causeBusy, t.events[before].End, end))
			end = t.events[before].End
		}
		at = before
	}
	slices.Reverse(path)
	return path
}

// traced is the steps of a run.
type traced struct {
	events []trace.Event
	progs  []*submodules.Program // by event
	index  map[stepKey]int
	byEnd  map[levels.Rank][]int // events of a rank, by their end
}

type stepKey struct {
	rank levels.Rank
	pass uint32
	step int32
}

// newTraced returns nil if there is nothing whose program is known.
func newTraced(events []trace.Event) *traced {
	t := &traced{index: map[stepKey]int{}, byEnd: map[levels.Rank][]int{}}
	for _, e := range events {
		if e.Step == trace.WholeRun {
			continue
		}
		p, ok := e.Source.(*submodules.Program)
		if !ok {
			return nil
		}
		t.index[stepKey{e.Rank, e.Pass, e.Step}] = len(t.events)
		t.byEnd[e.Rank] = append(t.byEnd[e.Rank], len(t.events))
		t.events, t.progs = append(t.events, e), append(t.progs, p)
	}
	if len(t.events) == 0 {
		return nil
	}
	for _, all := range t.byEnd {
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(t.events[a].End, t.events[b].End) })
	}
	return t
}

// otherEnd returns the event at the other end of a message if the step waited for it: if
// that end came later. when is from when it could go on. -1: it didn't wait.
func (t *traced) otherEnd(at int) (other int, when int64) {
	e, p := &t.events[at], t.progs[at]
	s := p.Step(dag.ID(e.Step))
	if s.Peer < 0 || s.Kind == submodules.NotifyStep {
		return -1, 0
	}
	peer := p.Peers[s.Peer].Rank
	for _, i := range t.byEnd[peer] { // any one has the peer's program of the pass
		if t.events[i].Pass != e.Pass {
			continue
		}
		back := t.progs[i].PeerIndex(e.Rank)
		if back < 0 {
			break
		}
		edges := t.progs[i].Peers[back].In
		if s.Kind.Incoming() {
			edges = t.progs[i].Peers[back].Out
		}
		if int(s.Edge) >= len(edges) {
			break
		}
		other, ok := t.index[stepKey{peer, e.Pass, int32(edges[s.Edge])}]
		if ok && t.events[other].Begin > e.Begin {
			return other, t.events[other].Begin
		}
		break
	}
	return -1, 0
}

// before returns the event of the rank that ended last until a time, -1 if there is none.
// Of those at the same time it is a step that the given one runs after, if there is one.
func (t *traced) before(at int, until int64, seen []bool) int {
	e, p := &t.events[at], t.progs[at]
	best := -1
	all := t.byEnd[e.Rank]
	first, _ := slices.BinarySearchFunc(all, until+1, func(i int, end int64) int { return cmp.Compare(t.events[i].End, end) })
	for _, i := range slices.Backward(all[:first]) {
		switch {
		case best >= 0 && t.events[i].End < t.events[best].End:
			return best
		case seen[i] || i == at:
			continue
		case best < 0:
			best = i
		}
		if t.events[i].Pass == e.Pass && p.Has(dag.ID(t.events[i].Step), dag.ID(e.Step)) {
			return i
		}
	}
	return best
}

func (t *traced) piece(at int, cause string, begin, end int64) PathPiece {
	e := &t.events[at]
	task, label, _, level, _ := e.Source.Describe(e.Step)
	return PathPiece{Rank: e.Rank, Task: task, Label: label, Level: level, Cause: cause, Begin: begin, End: end}
}
