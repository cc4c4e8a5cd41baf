package viz

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// The causes of a path's pieces in a trace.
const (
	causeMessage = "message" // from when both ends could go on to the end of the step, or as long as the other end made it wait
	causeBusy    = "engine"  // between two steps of a rank: its engine had other things to do
)

// More causes, of steps that were on their way.
const (
	causeCopy   = "copying"
	causeReduce = "combining"
	causeHandle = "handling"
)

// causeOf returns the cause of a piece with a step of a kind on its way.
func causeOf(kind string) string {
	switch kind {
	case "copy", "share":
		return causeCopy
	case "reduce":
		return causeReduce
	case "send", "recv", "await":
		return causeMessage
	}
	return causeHandle
}

// TracePath returns the critical path of a traced run: the chain of steps up to the last one to
// end. A step waited for the last of its predecessors: the step before it in the program, the
// other end of its message, or the step before it on its rank. Events must be those of one run
// on all ranks, and their sources [trace.Linked], like compiled programs; if they aren't there
// is no path.
func TracePath(events []trace.Event) []PathPiece {
	path, _ := tracePath(events)
	return path
}

// tracePath is [TracePath]. origin is the rank at the beginning of the path: nothing could go on
// without it.
func tracePath(events []trace.Event) (path []PathPiece, origin levels.Rank) {
	t := newTraced(events)
	if t == nil {
		return nil, -1
	}
	at := 0
	for i := range t.events {
		if t.events[i].End > t.events[at].End {
			at = i
		}
	}
	end, seen := t.events[at].End, make([]bool, len(t.events))
	for at >= 0 && !seen[at] {
		seen[at] = true
		e := &t.events[at]
		origin = e.Rank
		// Seen from the other end of a message the step is over when it begins.
		if from, when := t.otherEnd(at); from >= 0 && when <= end && !seen[from] {
			if when < end { // else the message took no time: all of the step was waiting
				path = append(path, t.piece(at, causeMessage, when, end))
			}
			at, end = from, when
			continue
		}
		if e.Begin < end {
			_, _, kind, _, _ := e.Source.Describe(e.Step)
			path = append(path, t.piece(at, causeOf(kind), e.Begin, end))
			end = e.Begin
		}
		before := t.eventBefore(at, end, seen)
		if before >= 0 && t.events[before].End < end {
			path = append(path, t.piece(at, causeBusy, t.events[before].End, end))
			end = t.events[before].End
		}
		at = before
	}
	slices.Reverse(path)
	return path, origin
}

// traced is the steps of a run.
type traced struct {
	events   []trace.Event
	messages map[TracedMessage]messageEnds
	byEnd    map[levels.Rank][]int // events of a rank, by their end
}

// TracedMessage is a message of a run, or a word without bytes.
type TracedMessage struct {
	From, To levels.Rank
	Pass     uint32
	Edge     int32 // its number among all from the one rank to the other in the program
}

// messageEnds are the events at both ends of it; -1: none.
type messageEnds struct{ send, recv int }

// MessageOf returns the message that a step speaks or hears. It is not ok for other steps, and
// without a [trace.Linked] source.
func MessageOf(e *trace.Event) (m TracedMessage, outgoing, ok bool) {
	p, ok := e.Source.(trace.Linked)
	if !ok || e.Step == trace.WholeRun {
		return m, false, false
	}
	peer, edge, outgoing := p.Link(e.Step)
	if peer < 0 {
		return m, false, false
	}
	m = TracedMessage{e.Rank, peer, e.Pass, edge}
	if !outgoing {
		m.From, m.To = peer, e.Rank
	}
	return m, outgoing, true
}

// newTraced returns nil for events without a known program.
func newTraced(events []trace.Event) *traced {
	t := &traced{messages: map[TracedMessage]messageEnds{}, byEnd: map[levels.Rank][]int{}}
	for _, e := range events {
		if e.Step == trace.WholeRun {
			continue
		}
		if _, ok := e.Source.(trace.Linked); !ok {
			return nil
		}
		if m, outgoing, ok := MessageOf(&e); ok {
			both, known := t.messages[m]
			if !known {
				both = messageEnds{-1, -1}
			}
			if outgoing {
				both.send = len(t.events)
			} else {
				both.recv = len(t.events)
			}
			t.messages[m] = both
		}
		t.byEnd[e.Rank] = append(t.byEnd[e.Rank], len(t.events))
		t.events = append(t.events, e)
	}
	if len(t.events) == 0 {
		return nil
	}
	for _, all := range t.byEnd {
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(t.events[a].End, t.events[b].End) })
	}
	return t
}

// otherEnd returns the event at the other end of a message if the step waited for it, the later
// one. when is the time from which it could go on. -1: it didn't wait.
func (t *traced) otherEnd(at int) (other int, when int64) {
	e := &t.events[at]
	m, outgoing, ok := MessageOf(e)
	if _, _, kind, _, _ := e.Source.Describe(e.Step); !ok || kind == "notify" {
		return -1, 0
	}
	other = t.messages[m].send
	if outgoing {
		other = t.messages[m].recv
	}
	if other < 0 || t.events[other].Begin <= e.Begin {
		return -1, 0
	}
	return other, t.events[other].Begin
}

// eventBefore returns the event of the rank that ended last until a time, -1 if there is none. Of
// simultaneous ends it is a predecessor of the given step, if there is one.
func (t *traced) eventBefore(at int, until int64, seen []bool) int {
	e := &t.events[at]
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
		if t.events[i].Pass == e.Pass && slices.Contains(e.Source.(trace.Linked).Next(t.events[i].Step), e.Step) {
			return i
		}
	}
	return best
}

func (t *traced) piece(at int, cause string, begin, end int64) PathPiece {
	e := &t.events[at]
	task, label, _, level, _ := e.Source.Describe(e.Step)
	return PathPiece{Rank: e.Rank, Task: task, Label: label, Level: level, Step: e.Step, Cause: cause, Begin: begin, End: end}
}
