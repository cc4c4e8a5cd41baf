package executor

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/ranges"
)

// description is the text of a run: everything its digest covers.
type description struct {
	Request   string
	Operation string `json:",omitempty"`
	Plan      string `json:",omitempty"`
	Layout    string `json:",omitempty"`
}

// unknownCall stands for a call of a rank gone without Close, or of a million calls ago.
var unknownCall = &description{Request: "another one, about which it can't be asked any more"}

// mostText bounds the texts of a description, so two of them fit into a note.
const mostText = 2 << 10

// shortenText shortens a long text. Different texts stay different.
func shortenText(text string) string {
	if len(text) <= mostText {
		return text
	}
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%s… (%d bytes, %08x)", text[:mostText], len(text), h.Sum32())
}

// MismatchError is the difference between ranks of a communicator; it wraps [ErrMismatch]. All of
// them get the same, and none of the ranks it names has failed.
type MismatchError struct {
	Rank, Peer         levels.Rank
	Request, PeerWants string      // with the other differences, if the requests read the same
	Seq                uint32      // how many collectives both had called on the communicator before
	Comm               wire.CommID // the communicator
	// With are the other ranks with Rank's request, PeerWith those with Peer's, ascending. Of more
	// than 64 ranks only Rank and Peer are known.
	With, PeerWith []levels.Rank `json:",omitempty"`
	// Others names the calls of further ranks: rank 5 runs barrier.
	Others []string `json:",omitempty"`
	// Absent are the ranks missing in the call, ascending.
	Absent []levels.Rank `json:",omitempty"`
	// Odd are the ranks with another request than most others, ascending. None: no request has
	// more ranks than each other one, or they are not known.
	Odd []levels.Rank `json:",omitempty"`
}

// newMismatch compares the calls of two ranks.
func newMismatch(rank, peer levels.Rank, seq uint32, mine, theirs *description) *MismatchError {
	m := &MismatchError{Rank: rank, Peer: peer, Seq: seq, Request: mine.Request, PeerWants: theirs.Request}
	if m.Request != m.PeerWants {
		return m
	}
	for _, d := range []struct{ what, mine, theirs string }{
		{"operation", mine.Operation, theirs.Operation},
		{"plan", mine.Plan, theirs.Plan},
		{"ranks", mine.Layout, theirs.Layout},
	} {
		if d.mine != d.theirs {
			m.Request += fmt.Sprintf(" with %s %s", d.what, d.mine)
			m.PeerWants += fmt.Sprintf(" with %s %s", d.what, d.theirs)
		}
	}
	return m
}

// Error prints both requests.
func (e *MismatchError) Error() string {
	text := fmt.Sprintf("%v: as call #%d %s %s, %s %s", ErrMismatch, e.Seq,
		whoRuns(slices.Concat(e.With, []levels.Rank{e.Rank})), e.Request,
		whoRuns(slices.Concat(e.PeerWith, []levels.Rank{e.Peer})), e.PeerWants)
	for _, other := range e.Others {
		text += ", " + other
	}
	switch len(e.Absent) {
	case 0:
		return text
	case 1:
		return text + fmt.Sprintf("; rank %d has not come to it", e.Absent[0])
	}
	return text + fmt.Sprintf("; ranks %s have not come to it", rangesOf(e.Absent))
}

// whoRuns is the beginning of a sentence: rank 3 runs, or ranks 0-2,4 run.
func whoRuns(all []levels.Rank) string {
	if len(all) == 1 {
		return fmt.Sprintf("rank %d runs", all[0])
	}
	return fmt.Sprintf("ranks %s run", rangesOf(all))
}

func rangesOf(all []levels.Rank) string {
	numbers := make([]int, len(all))
	for i, r := range all {
		numbers[i] = int(r)
	}
	slices.Sort(numbers)
	return ranges.Text(numbers)
}

// Unwrap returns [ErrMismatch].
func (e *MismatchError) Unwrap() error { return ErrMismatch }
