package executor

import (
	"maps"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// knownCalls are the descriptions of a rank's calls, by their digests: far fewer than calls. A rank
// noticing a mismatch may ask much later.
type knownCalls struct {
	byDigest map[uint32]*description
	order    []uint32 // of the map's keys, the oldest first
}

// mostKnown bounds the descriptions.
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

// callState says how far a rank is with a call.
type callState uint8

const (
	callUnknown callState = iota // or never known
	callAbsent
	callPresent
)

// foundCall is a rank's call with a number.
type foundCall struct {
	state  callState
	digest uint32       // only with cameTo
	call   *description // only with cameTo
}

// pastCalls are the last calls of a leaving rank: it can't be asked any more.
type pastCalls struct {
	Calls []pastCall // on the communicator of all ranks, the oldest first
	Known []pastCall // other descriptions, without numbers
}

type pastCall struct {
	Seq, Digest uint32
	Call        *description `json:",omitempty"` // nil: that of an earlier one with this digest
}

// mostPast bounds the calls of a goodbye, mostPastText about the bytes of their descriptions.
const (
	mostPast     = 16
	mostPastText = 16 << 10
)

// find is [Endpoint.findCall] for a departed rank.
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
			return foundCall{callPresent, digest, k.Call}
		}
	}
	return foundCall{}
}

// tellOthers adds the calls of the other ranks, by their numbers.
func (e *MismatchError) tellOthers(size int, mine, theirs uint32, found map[levels.Rank]foundCall) {
	others, same := map[string][]levels.Rank{}, map[uint32][]levels.Rank{}
	defer func() {
		same[mine], same[theirs] = append(same[mine], e.With...), append(same[theirs], e.PeerWith...)
		same[mine], same[theirs] = append(same[mine], e.Rank), append(same[theirs], e.Peer)
		e.Odd = findOdd(slices.Collect(maps.Values(same)))
	}()
	for r := range levels.Rank(size) {
		f, known := found[r]
		switch {
		case r == e.Rank || r == e.Peer || !known:
		case f.state == callAbsent:
			e.Absent = append(e.Absent, r)
		case f.call == nil:
		case f.digest == mine:
			e.With = append(e.With, r)
		case f.digest == theirs:
			e.PeerWith = append(e.PeerWith, r)
		default:
			same[f.digest] = append(same[f.digest], r)
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

// findOdd returns all ranks but those of the largest group; nil if no group is larger than each other one.
func findOdd(groups [][]levels.Rank) (odd []levels.Rank) {
	slices.SortFunc(groups, func(a, b []levels.Rank) int { return len(b) - len(a) })
	if len(groups) < 2 || len(groups[0]) == len(groups[1]) {
		return nil
	}
	odd = slices.Concat(groups[1:]...)
	slices.Sort(odd)
	return odd
}

// mostOthers bounds the requests of a mismatch besides the two, so that it fits into a note.
const mostOthers = 4
