package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
)

// wait is a rank held up in a call by another one.
type wait struct {
	*spot
	peer *flight.State
	long time.Duration // the longest wait behind it, its own included
}

// findWaits follows the waits of ranks.
func (j *job) findWaits() {
	if !slices.ContainsFunc(j.all, func(s flight.State) bool { return j.stands(&s) }) {
		return
	}
	if circle := j.circle(); len(circle) > 0 {
		j.addCircle(circle)
		return
	}
	late := map[int][]wait{}
	var between []wait
	for _, w := range j.behind() {
		switch w.why {
		case inOperation:
			late[w.peer.Rank] = append(late[w.peer.Rank], w.wait)
		case notCome:
			if j.isAway(w.peer) {
				late[w.peer.Rank] = append(late[w.peer.Rank], w.wait)
			}
		case wayBetween:
			between = append(between, w.wait)
		}
	}
	j.addLate(late)
	if len(j.found) == 0 {
		j.findStill(between)
	}
}

// isAway reports whether nothing of the job keeps a rank from calls: it is in none, or in one that any rank
// could end.
func (j *job) isAway(s *flight.State) bool {
	for k := range s.Open {
		if o := &s.Open[k]; o.Awaited && !o.Any {
			return false
		}
	}
	return true
}

// heldWait is a wait with its reason.
type heldWait struct {
	wait
	why why
}

// behind returns the waits of programs that have stood still for long enough, and those of all ranks in their
// way: they may have begun only just now. Calls that any rank could end wait for nobody in particular. The longest come first.
func (j *job) behind() (all []heldWait) {
	long := make([]time.Duration, len(j.spots))
	var todo []int
	add := func(i int, behind time.Duration) {
		if long[i] == 0 && !j.spots[i].call.Any {
			long[i] = max(behind, j.spots[i].call.For, 1)
			todo = append(todo, i)
		}
	}
	for i := range j.spots {
		if w := &j.spots[i]; w.call.Awaited && j.stands(w.s) {
			add(i, 0)
		}
	}
	slices.SortStableFunc(todo, func(a, b int) int { return cmp.Compare(long[b], long[a]) })
	for ; len(todo) > 0; todo = todo[1:] {
		i := todo[0]
		for _, h := range j.spots[i].holds {
			all = append(all, heldWait{wait{&j.spots[i], h.peer, long[i]}, h.why})
			switch h.why {
			case inCall:
				add(h.spot, long[i])
			case notCome:
				for k := range h.peer.Open {
					if at, held := j.at[&h.peer.Open[k]]; held && h.peer.Open[k].Awaited {
						add(at, long[i])
					}
				}
			}
		}
	}
	return all
}

// addLate adds the ranks that others wait for.
func (j *job) addLate(late map[int][]wait) {
	ranks := slices.SortedFunc(maps.Keys(late), func(a, b int) int {
		return cmp.Or(cmp.Compare(longest(late[b]), longest(late[a])), cmp.Compare(a, b))
	})
	var lateRanks []int
	var texts []string
	for _, r := range ranks {
		s, w := j.by[r], late[r]
		if s.Doing == flight.Computing {
			j.add(Computing, []int{r}, longest(w), "%s is in an operation of its program while %s %s for it%s", j.name(s), rankText(waiters(w)), verb(waiters(w), "waits", "wait"), at(s))
			continue
		}
		lateRanks = append(lateRanks, r)
		if len(texts) < maxNamed {
			texts = append(texts, fmt.Sprintf("rank %d has not come to %s for %s%s", r, callText(w[0].call), seconds(longest(w)), whereabouts(s)))
		}
	}
	if len(lateRanks) > 0 {
		if more := len(lateRanks) - len(texts); more > 0 {
			texts = append(texts, fmt.Sprintf("%d more ranks", more))
		}
		j.add(Late, lateRanks, longest(late[lateRanks[0]]), "%s", strings.Join(texts, "; "))
	}
}

// circlePart is by how much shorter than others the waits in a circle may be: its last rank to come
// has waited less than the ranks behind it.
const circlePart = 4

// addCircle adds ranks in a circle of waits.
func (j *job) addCircle(ranks []int) {
	var texts []string
	long := time.Duration(0)
	for _, r := range ranks {
		s := j.by[r]
		long = max(long, awaitedCall(s).For)
		texts = append(texts, fmt.Sprintf("rank %d is %v", r, s))
	}
	j.add(Deadlock, ranks, long, "%s", strings.Join(texts[:min(len(texts), maxNamed)], "; "))
}

// findStill finds bytes that don't come, if nothing else explains the waits: all have come. Ways between nodes
// are suspected first.
func (j *job) findStill(between []wait) {
	slices.SortStableFunc(between, func(a, b wait) int {
		return cmp.Or(boolToInt(j.apart(b.s.Rank, b.peer.Rank))-boolToInt(j.apart(a.s.Rank, a.peer.Rank)), cmp.Compare(b.call.For, a.call.For))
	})
	knot, call := j.lastKnot()
	switch apart := len(between) > 0 && j.apart(between[0].s.Rank, between[0].peer.Rank); {
	case len(between) > 0 && (apart || len(knot) == 0):
		w := between[0]
		if slices.ContainsFunc(between, func(b wait) bool { return b.s == w.peer && b.peer == w.s }) || w.call.Transfer {
			// Each waits for the other: the bytes, or the word that they may come.
			j.add(SlowLink, []int{w.s.Rank, w.peer.Rank}, w.call.For, "no bytes come between ranks %d and %d in %s for %s, and both have come to it",
				min(w.s.Rank, w.peer.Rank), max(w.s.Rank, w.peer.Rank), callText(w.call), seconds(w.call.For))
			return
		}
		j.add(SlowLink, nil, w.call.For, "rank %d waits for bytes of rank %d in %s for %s, and that has come to it: %s",
			w.s.Rank, w.peer.Rank, callText(w.call), seconds(w.call.For), w.call.Waits)
		j.found[len(j.found)-1].Ranks = []int{w.peer.Rank, w.s.Rank}
	case len(knot) > 0:
		j.add(SlowLink, knot, call.For, "no bytes come between %s in %s for %s", rankText(knot), callText(call), seconds(call.For))
	}
}

// apart reports whether two ranks are on different nodes, as far as is known.
func (j *job) apart(a, b int) bool {
	return max(a, b) >= len(j.Nodes) || j.Nodes[a] != j.Nodes[b]
}

// lastKnot returns the ranks of one call that all others wait for, and that wait for each other: those with such
// a wait between nodes if there are any.
func (j *job) lastKnot() (ranks []int, call *flight.Open) {
	dead := j.findDead(j.Least / circlePart)
	knots := j.findKnots(dead)
	var apart []int
	for i := range j.spots {
		if knots[i] != 1 {
			continue
		}
		w := &j.spots[i]
		if call == nil || w.call.For > call.For {
			call = w.call
		}
		ranks = append(ranks, w.s.Rank)
		j.next(i, dead, func(to int, _ bool) {
			if other := j.spots[to].s.Rank; j.apart(w.s.Rank, other) {
				apart = append(apart, w.s.Rank, other)
			}
		})
	}
	if len(apart) > 0 {
		ranks = apart
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), call
}

// waitedFor is how long others have waited for a rank.
func (j *job) waitedFor(rank int) (long time.Duration) {
	for i := range j.spots {
		if w := &j.spots[i]; w.call.Awaited && !w.call.Any && slices.Contains(w.call.Peers, rank) {
			long = max(long, w.call.For)
		}
	}
	return long
}

// stands reports whether a rank waits in a call without progress.
func (j *job) stands(s *flight.State) bool {
	o := awaitedCall(s)
	return o != nil && o.For >= j.Least
}

// awaitedCall returns the call awaited by a rank's program; nil: none.
func awaitedCall(s *flight.State) *flight.Open {
	for i := range s.Open {
		if s.Open[i].Awaited {
			return &s.Open[i]
		}
	}
	return nil
}

func longest(all []wait) (long time.Duration) {
	for _, w := range all {
		long = max(long, w.long)
	}
	return long
}

func waiters(all []wait) (ranks []int) {
	for _, w := range all {
		ranks = append(ranks, w.s.Rank)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// callText is barrier #7.
func callText(o *flight.Open) string {
	if o.Transfer {
		return "a " + o.What
	}
	return fmt.Sprintf("%s #%d", o.What, o.Seq)
}

// whereabouts tells the place of a late rank.
func whereabouts(s *flight.State) string {
	if s.Doing == flight.Left {
		return "; it has closed its communicator"
	}
	if s.Doing != flight.Inside && s.At != "" && !s.IsElsewhere() {
		return "; it is in " + s.At
	}
	return "; it is " + s.String()
}

func at(s *flight.State) string {
	if s.At == "" {
		return ""
	}
	return ", at " + s.At
}
