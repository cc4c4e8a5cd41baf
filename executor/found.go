package executor

import (
	"maps"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// knownCalls are the descriptions of what a rank has started, by their digests: far fewer than calls. Those who find a
// mismatch may ask much later.
type knownCalls struct {
	byDigest map[uint32]*description
	order    []uint32 // of the map's keys, the oldest first
}

// mostKnown bounds them.
const mostKnown = 256

// add keeps a description, and forgets the oldest one if there are too many.
func (k *knownCalls) add(digest uint32, call *description) {
	if k.byDigest[digest] != nil {
		return
	}
	if k.byDigest == nil {
		k.byDigest = map[uint32]*description{}
	}
	if len(k.order) == mostKnown {
		delete(k.byDigest, k.order[0])
		k.order = slices.Delete(k.order, 0, 1)
	}
	k.byDigest[digest] = call
	k.order = append(k.order, digest)
}

// callState is what is known of a rank and a call.
type callState uint8

const (
	forgotten callState = iota // or never known
	notCome
	cameTo
)

// foundCall is what a rank runs, or ran, under a number.
type foundCall struct {
	state  callState
	digest uint32       // of one that it came to
	call   *description // likewise
}

// pastCalls are the last calls of a rank that leaves: it can't be asked any more.
type pastCalls struct {
	Calls []pastCall // on the communicator of all ranks, the oldest first
	Known []pastCall // other descriptions, without numbers
}

type pastCall struct {
	Seq, Digest uint32
	Call        *description `json:",omitempty"` // nil: of one before with this digest
}

// mostPast bounds the calls of a goodbye, mostPastText about the bytes of their descriptions.
const (
	mostPast     = 16
	mostPastText = 16 << 10
)

// find is [Endpoint.findCall] of a rank that has left.
func (p *pastCalls) find(comm wire.CommID, seq, digest uint32) foundCall {
	if p == nil {
		return foundCall{}
	}
	for _, k := range p.Calls {
		if comm == 0 && k.Seq == seq && digest == 0 {
			digest = k.Digest
		}
	}
	for _, k := range slices.Concat(p.Calls, p.Known) {
		if digest != 0 && k.Digest == digest && k.Call != nil {
			return foundCall{cameTo, digest, k.Call}
		}
	}
	return foundCall{}
}

// tellOthers adds what the other ranks run, by their numbers.
func (e *MismatchError) tellOthers(size int, mine, theirs uint32, found map[levels.Rank]foundCall) {
	others := map[string][]levels.Rank{}
	for r := range levels.Rank(size) {
		f, known := found[r]
		switch {
		case r == e.Rank || r == e.Peer || !known:
		case f.state == notCome:
			e.Absent = append(e.Absent, r)
		case f.call == nil:
		case f.digest == mine:
			e.With = append(e.With, r)
		case f.digest == theirs:
			e.PeerWith = append(e.PeerWith, r)
		default:
			others[f.call.Request] = append(others[f.call.Request], r)
		}
	}
	for _, request := range slices.Sorted(maps.Keys(others)) {
		if len(e.Others) == mostOthers {
			e.Others = append(e.Others, "others run something else")
			return
		}
		e.Others = append(e.Others, whoRuns(others[request])+" "+request)
	}
}

// mostOthers bounds the requests of a mismatch besides the two, so that it fits into a note.
const mostOthers = 4
