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
	rank int
	call *flight.Open
	peer *flight.State
}

// findWaits follows the waits of ranks.
func (j *job) findWaits() {
	if j.findCircle() {
		return
	}
	late := map[int][]wait{}
	var between []wait
	j.eachWait(func(w wait) {
		come, known := w.peer.HasCome(w.call.Comm, w.call.Seq)
		switch {
		case w.peer.Doing == flight.Computing:
			late[w.peer.Rank] = append(late[w.peer.Rank], w)
		case !known:
		case w.call.Transfer, !come:
			if w.peer.Doing == flight.Outside || awaitedCall(w.peer) == nil {
				late[w.peer.Rank] = append(late[w.peer.Rank], w)
			}
		case w.peer.Doing == flight.Outside, !isHeld(w.peer):
			between = append(between, w)
		}
	})
	longest := func(all []wait) time.Duration { return max(longest(all), j.longestBehind(all)) }
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
	if len(j.found) == 0 {
		j.findStill(between)
	}
}

// circlePart is by how much shorter than others the waits in a circle may be: its last rank to come
// has waited less than the ranks behind it.
const circlePart = 4

// findCircle finds ranks in a circle of waits.
func (j *job) findCircle() bool {
	if !slices.ContainsFunc(j.all, func(s flight.State) bool { return j.stands(&s) }) {
		return false
	}
	circle := flight.Deadlock(j.all, j.Least/circlePart)
	if len(circle) == 0 {
		return false
	}
	var ranks []int
	var texts []string
	same := true
	long := time.Duration(0)
	for i := range circle {
		s := &circle[i]
		first, this := awaitedCall(&circle[0]), awaitedCall(s)
		same = same && !this.Transfer && this.Comm == first.Comm && this.Seq == first.Seq && this.What == first.What
		ranks, long = append(ranks, s.Rank), max(long, this.For)
		texts = append(texts, fmt.Sprintf("rank %d is %v", s.Rank, s))
	}
	if same { // a collective alone can't wait for itself: the fault is between the ranks
		if len(j.found) == 0 {
			j.add(SlowLink, ranks, long, "no bytes come between %s in %s for %s", rankText(ranks), callText(awaitedCall(&circle[0])), seconds(long))
		}
		return true
	}
	j.add(Deadlock, ranks, long, "%s", strings.Join(texts, "; "))
	return true
}

// findStill takes waits for ranks after their part: the bytes are on their way.
func (j *job) findStill(between []wait) {
	slices.SortStableFunc(between, func(a, b wait) int { return cmp.Compare(b.call.For, a.call.For) })
	if len(between) > 0 {
		w := between[0]
		j.add(SlowLink, []int{w.peer.Rank, w.rank}, w.call.For, "rank %d waits for bytes of rank %d in %s for %s, and that has come to it: %s",
			w.rank, w.peer.Rank, callText(w.call), seconds(w.call.For), w.call.Waits)
		j.found[len(j.found)-1].Ranks = []int{w.peer.Rank, w.rank}
	}
}

// eachWait calls f for each wait of a program that has stood still for long enough, and for
// the waits of all ranks in its way: they may have begun only just now. The
// peers are known.
func (j *job) eachWait(f func(w wait)) {
	var todo []*flight.State
	seen := map[int]bool{}
	add := func(s *flight.State) {
		if s.Doing == flight.Inside && !seen[s.Rank] {
			seen[s.Rank] = true
			todo = append(todo, s)
		}
	}
	for i := range j.all {
		if j.stands(&j.all[i]) {
			add(&j.all[i])
		}
	}
	for ; len(todo) > 0; todo = todo[1:] {
		s := todo[0]
		for k := range s.Open {
			o := &s.Open[k]
			if !o.Awaited {
				continue
			}
			for _, p := range o.Peers {
				if peer := j.by[p]; peer != nil && p != s.Rank {
					f(wait{s.Rank, o, peer})
					add(peer)
				}
			}
		}
	}
}

// longestBehind returns the longest wait of others for the waiting ranks themselves.
func (j *job) longestBehind(all []wait) (long time.Duration) {
	for _, w := range all {
		long = max(long, j.waitedFor(w.rank))
	}
	return long
}

// waitedFor is how long others have waited for a rank.
func (j *job) waitedFor(rank int) (long time.Duration) {
	j.eachWait(func(w wait) {
		if w.peer.Rank == rank {
			long = max(long, w.call.For)
		}
	})
	return long
}

// stands reports whether a rank waits in a call without progress.
func (j *job) stands(s *flight.State) bool {
	o := awaitedCall(s)
	return o != nil && o.For >= j.Least
}

// isHeld reports whether a rank waits for others.
func isHeld(s *flight.State) bool {
	o := awaitedCall(s)
	return o != nil && len(o.Peers) > 0
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
		long = max(long, w.call.For)
	}
	return long
}

func waiters(all []wait) (ranks []int) {
	for _, w := range all {
		ranks = append(ranks, w.rank)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
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
	if s.At != "" {
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
