package verdict

import (
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// spot is a call of a rank, held up by others.
type spot struct {
	s     *flight.State
	call  *flight.Open
	holds []hold
}

// hold is a reason for a spot not to get on.
type hold struct {
	peer *flight.State
	why  why
	spot int // inCall: the peer's spot of the same call
}

// why says how a rank holds up a call. The zero value: it does not, or nobody can tell.
type why uint8

const (
	_           why = iota
	notCome         // it has not come to the call: its program is elsewhere
	inCall          // it has come, and is held up in the call itself
	wayBetween      // it has done its part: the bytes don't come
	inOperation     // it is in an operation of its program, in this call or in one before
)

// findSpots lists the calls held up by others, and by whom.
func (j *job) findSpots() {
	j.at = map[*flight.Open]int{}
	for i := range j.all {
		s := &j.all[i]
		if s.Doing != flight.Inside && s.Doing != flight.Outside && s.Doing != flight.Computing {
			continue
		}
		for k := range s.Open {
			if o := &s.Open[k]; !o.Operating && (o.Any || len(o.Peers) > 0) {
				j.at[o] = len(j.spots)
				j.spots = append(j.spots, spot{s: s, call: o})
			}
		}
	}
	for i := range j.spots {
		w := &j.spots[i]
		if w.call.Any {
			continue // no rank in particular holds it up
		}
		for _, p := range w.call.Peers {
			if peer := j.by[p]; peer != nil && peer != w.s {
				if why, at := j.whyHeld(w, peer); why != 0 {
					w.holds = append(w.holds, hold{peer, why, at})
				}
			}
		}
	}
}

// eachSender calls f for the ranks that could end a receive from any, until it returns false. Those that have
// left send no more.
func (j *job) eachSender(w *spot, f func(peer *flight.State) bool) {
	for i := range j.all {
		peer := &j.all[i]
		member := len(w.call.Peers) == 0 || slices.Contains(w.call.Peers, peer.Rank) // none are listed: they are too many
		if peer != w.s && member && peer.Doing != flight.Left && peer.Doing != flight.Gone && !f(peer) {
			return
		}
	}
}

// whyHeld says how a rank holds up a call of another one.
func (j *job) whyHeld(w *spot, peer *flight.State) (why, int) {
	absent := notCome
	switch peer.Doing {
	case flight.Inside, flight.Outside, flight.Left:
	case flight.Computing:
		if !waitsElsewhere(peer) {
			absent = inOperation
		}
	default:
		return 0, -1
	}
	if w.call.Transfer {
		switch o := otherEnd(w, peer); {
		case o == nil:
			return absent, -1
		case o.For < j.Least/circlePart:
			return 0, -1 // it has just come
		}
		return wayBetween, -1
	}
	switch come, known := peer.HasCome(w.call.Comm, w.call.Seq); {
	case !known && absent == notCome:
		return 0, -1
	case !come:
		return absent, -1
	}
	for k := range peer.Open {
		o := &peer.Open[k]
		if o.Transfer || o.Comm != w.call.Comm || o.Seq != w.call.Seq {
			continue
		}
		if o.Operating {
			return inOperation, -1
		}
		if at, held := j.at[o]; held {
			return inCall, at
		}
		return 0, -1 // it gets on
	}
	if len(peer.Open) >= flight.MaxOpen || peer.Since > 0 && peer.Since < j.Least/circlePart {
		return 0, -1 // the call may be among those left out, or have ended just now
	}
	return wayBetween, -1
}

// waitsElsewhere reports whether a rank's program waits in other calls than that of its operation, which was only started.
func waitsElsewhere(s *flight.State) bool {
	waits, operates := false, false
	for k := range s.Open {
		o := &s.Open[k]
		if o.Awaited && o.Operating {
			return false
		}
		waits, operates = waits || o.Awaited, operates || o.Operating
	}
	return waits && operates
}

// otherEnd returns the peer's end of a transfer: the receive for a send with the same tag, or the other way round.
func otherEnd(w *spot, peer *flight.State) *flight.Open {
	way, tag := ends(w.call)
	for k := range peer.Open {
		o := &peer.Open[k]
		if !o.Transfer || o.Any || o.Comm != w.call.Comm || !slices.Contains(o.Peers, w.s.Rank) {
			continue
		}
		if other, same := ends(o); other != way && same == tag {
			return o
		}
	}
	return nil
}

// ends returns the first word and the last two of receive from rank 1, tag 5.
func ends(o *flight.Open) (way, tag string) {
	way, _, _ = strings.Cut(o.What, " ")
	return way, o.What[strings.LastIndexByte(o.What, ',')+1:]
}

// isDead reports whether a rank's program waits in calls and all of these are among the dead.
func (j *job) isDead(s *flight.State, dead []bool) bool {
	waits := false
	for k := range s.Open {
		if o := &s.Open[k]; o.Awaited {
			at, held := j.at[o]
			if !held || !dead[at] {
				return false
			}
			waits = true
		}
	}
	return s.Doing == flight.Inside && waits
}

// findDead returns the spots, held up for long enough, that wait for nothing but each other.
// A rank that may get on in some call counts as free.
func (j *job) findDead(least time.Duration) []bool {
	dead := make([]bool, len(j.spots))
	for i := range j.spots {
		dead[i] = j.spots[i].call.For >= least
	}
	for again := true; again; {
		again = false
		for i := range j.spots {
			if dead[i] && !j.staysDead(&j.spots[i], dead) {
				dead[i], again = false, true
			}
		}
	}
	return dead
}

// staysDead reports whether a dead peer holds up a call, or all that could end a receive from any are dead.
func (j *job) staysDead(w *spot, dead []bool) bool {
	if !w.call.Any {
		return slices.ContainsFunc(w.holds, func(h hold) bool {
			return h.why == inCall && dead[h.spot] || h.why == notCome && j.isDead(h.peer, dead)
		})
	}
	senders, stays := 0, true
	j.eachSender(w, func(peer *flight.State) bool {
		senders++
		stays = j.isDead(peer, dead)
		return stays
	})
	return stays && senders > 0
}

// next calls f for the dead spots that hold up a dead one. away: their programs have not come to its call.
func (j *job) next(i int, dead []bool, f func(to int, away bool)) {
	program := func(peer *flight.State) bool {
		for n := range peer.Open {
			if o := &peer.Open[n]; o.Awaited {
				f(j.at[o], true)
			}
		}
		return true
	}
	w := &j.spots[i]
	if w.call.Any {
		j.eachSender(w, program)
		return
	}
	for _, h := range w.holds {
		switch {
		case h.why == inCall && dead[h.spot]:
			f(h.spot, false)
		case h.why == notCome && j.isDead(h.peer, dead):
			program(h.peer)
		}
	}
}
