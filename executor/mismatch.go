package executor

import (
	"fmt"
	"hash/fnv"

	"github.com/tierflow/tierflow/levels"
)

// description says what a run is: all that its digest covers.
type description struct {
	Request   string
	Operation string `json:",omitempty"`
	Plan      string `json:",omitempty"`
	Layout    string `json:",omitempty"`
}

// unknownCall is one that nobody remembers.
var unknownCall = &description{Request: "another one, which it no longer remembers"}

// mostText bounds the texts of a description, so that two fit into a note.
const mostText = 2 << 10

// shortenText shortens a long text so that texts which differ still do.
func shortenText(text string) string {
	if len(text) <= mostText {
		return text
	}
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%s… (%d bytes, %08x)", text[:mostText], len(text), h.Sum32())
}

// MismatchError is what differs between two ranks; it wraps [ErrMismatch].
type MismatchError struct {
	Rank, Peer         levels.Rank
	Request, PeerWants string // with what else differs, if the requests read the same
	Seq                uint32 // how many collectives both had called on the communicator before
}

// newMismatch compares what two ranks run.
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
	return fmt.Sprintf("%v: as call %d (counted from 0) rank %d runs %s, rank %d runs %s", ErrMismatch, e.Seq, e.Rank, e.Request, e.Peer, e.PeerWants)
}

// Unwrap returns [ErrMismatch].
func (e *MismatchError) Unwrap() error { return ErrMismatch }
