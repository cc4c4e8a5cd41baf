// Package search looks for the fastest of some candidates, while a running program
// uses one of them: the holder. It is the state of such a search and has no clock: somebody else runs calls,
// takes their times and lets ranks agree on them. Equal times give equal verdicts, so all ranks of
// a job come to the same.
//
//	switch candidate, turn := s.Next(); turn {
//	case search.Usual: // run by the holder, and Note its time
//	case search.First: // prepare the candidate, Say whether that went well, Ready, run by it
//	case search.Trial: // run by it, Say its time, and Judge
//	}
//
// A trial is compared with the usual calls right before it, since machines are slower at times. The
// median of these differences judges a candidate. Its trials are kept for its next turn. The next
// turn goes to the candidate with the best chance: by its median, with a bonus that shrinks with the
// number of its trials.
//
// The idea comes from 6.2 in Fagg and others, Flexible Collective Communication Tuning
// Architecture Applied to Open MPI (2006).
package search

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of a search.
const (
	batch        = 4   // trials of a candidate in a row
	leastTrials  = 3   // trials of a candidate before it can become the holder
	enoughTrials = 4   // trials of a candidate before times alone decide its turn; with fewer it comes early every second round, since one batch may have been unlucky
	window       = 9   // latest calls of the holder, for people
	usualCalls   = 4   // usual calls before a trial, with times for all ranks
	mostGap      = 64  // times as many calls between trials after many in vain
	leastGap     = 2   // calls from one trial to the next
	keptTrials   = 24  // latest trials of a candidate; older ones don't count
	margin       = 150 // least advantage of a new holder, as a [difference]: 3%; less is not worth a change
)

// How sure a verdict must be: so many standard errors, squared, and in tenths.
const (
	surelyFaster = 30
	surelySlower = 10
)

// Assumed scatter of differences before there are some: their standard deviation, and its weight as a
// number of differences.
const (
	assumedDeviation = 1000
	assumedWeight    = 4
)

// unit is the sum of two times in the unit of their difference.
const unit = 10_000

// waitBonus is a candidate's bonus for each batch without a trial of it, as a difference. maxDifference
// bounds the differences: half as long again.
const (
	waitBonus     = 10
	maxDifference = 2000
)

// Turn is the use of a call.
type Turn uint8

// The turns of calls.
const (
	Usual Turn = iota // it runs by the holder
	First             // the first of a candidate: ranks connect, so it is not judged
	Trial             // it counts for the verdict on a candidate
)

// Verdict is the result of a trial.
type Verdict uint8

// The verdicts.
const (
	Open Verdict = iota // the candidate is tried again
	Drop                // the holder stays
	Keep                // the candidate is the holder from now on
)

// Words of [Search.Said].
const (
	wordFreeze = iota // 1: the search is to be frozen
	wordFault         // 1: it didn't go well
	wordTime          // of the trial, ns
	wordBefore        // of usual calls before it, ns; 0: none
	numWords   = wordBefore + usualCalls
)

// Search is the state of a search.
type Search struct {
	// Said is this rank's message: all ranks' Said are combined by their maximum, word by word,
	// before Ready and Judge.
	Said []int64

	all       []candidate
	holds     int
	tried     int // the candidate of this turn
	heldSince int // number of calls when the holder changed last
	calls     int
	every     int // calls from one trial to the next, at the beginning
	gap       int // and now, after trials in vain
	left      int // usual calls until the next trial
	ready     bool
	frozen    bool
	freeze    bool    // this rank wishes it
	failed    int     // batches in a row in vain
	round     int     // rounds so far: one ends after as many batches in vain as there are other candidates
	batch     int     // number of the last one
	recent    []int64 // times of the latest usual calls on this rank, a ring
	recentAt  int     // in recent
	trials    int     // of the candidate, in this batch
	bench     []int64 // times of the holder, as agreed, a ring
	benchAt   int     // in bench
}

// candidate has the trials of one candidate: their differences from the usual calls before each.
type candidate struct {
	name   string
	latest []int64 // differences, the newest last
	order  int     // of its last batch among all
	round  int     // of that batch
	faulty bool
}

// New returns a search among candidates with such names. holds is the index of the holder. One call in
// every, 2 or more, is a trial.
func New(names []string, holds, every int) *Search {
	s := &Search{Said: make([]int64, numWords), holds: holds, tried: holds, every: every, gap: every}
	for _, n := range names {
		s.all = append(s.all, candidate{name: n, latest: make([]int64, 0, keptTrials)})
	}
	s.recent, s.bench = make([]int64, min(usualCalls, every-1)), make([]int64, 0, window)
	s.left = every - 1
	s.turn()
	return s
}

// CheckEvery returns an error unless one call of so many may be a trial.
func CheckEvery(n int) error {
	if n < leastGap {
		return fmt.Errorf("a trial every %d calls; allowed are %d and more", n, leastGap)
	}
	return nil
}

// Holds is the index of the holder.
func (s *Search) Holds() int { return s.holds }

// Name is a candidate's name.
func (s *Search) Name(i int) string { return s.all[i].name }

// Next begins a call: it returns the candidate to run it by, and its use.
func (s *Search) Next() (i int, turn Turn) {
	s.calls++
	switch {
	case s.frozen || len(s.all) == 1:
		return s.holds, Usual
	case s.left > 0:
		s.left--
		return s.holds, Usual
	}
	s.left = s.gap - 1
	if !s.ready {
		return s.tried, First
	}
	return s.tried, Trial
}

// Note keeps the time of a usual call on this rank, ns.
func (s *Search) Note(ns int64) {
	s.recent[s.recentAt] = max(ns, 1)
	s.recentAt = (s.recentAt + 1) % len(s.recent)
}

// Say fills in Said after a first call or a trial: its time in ns, or its failure.
func (s *Search) Say(ns int64, failed bool) {
	clear(s.Said)
	if s.freeze {
		s.Said[wordFreeze] = 1
	}
	if failed {
		s.Said[wordFault] = 1
	}
	s.Said[wordTime] = ns
	copy(s.Said[wordBefore:], s.recent)
}

// Freeze asks for the end of trials, on all ranks, from the next one on.
func (s *Search) Freeze() { s.freeze = true }

// Continue begins trials again.
func (s *Search) Continue() {
	s.freeze, s.frozen, s.failed, s.gap = false, false, 0, s.every
	s.left = s.every - 1
}

// Frozen reports whether trials have ended.
func (s *Search) Frozen() bool { return s.frozen }

// Ready reads all ranks' messages in Said before the first call of a candidate, and reports whether
// the call may run by it.
func (s *Search) Ready() bool {
	s.ready = !s.stops()
	return s.ready
}

// stops drops the candidate if a rank asks to freeze or has failed, and reports whether it did.
func (s *Search) stops() bool {
	if s.Said[wordFreeze] > 0 {
		s.frozen = true
		s.turn()
		return true
	}
	if s.Said[wordFault] > 0 {
		s.all[s.tried].faulty = true
		s.drop()
		return true
	}
	return false
}

// Judge reads all ranks' messages in Said after a trial.
func (s *Search) Judge() Verdict {
	if s.stops() {
		return Drop
	}
	var near []int64 // a disturbance of the machine shows in the calls before a trial too
	for _, ns := range s.Said[wordBefore:] {
		if ns > 0 {
			near = append(near, ns)
			s.compare(ns)
		}
	}
	c := &s.all[s.tried]
	c.faulty = false
	s.trials++
	if len(near) > 0 {
		c.addTrial(difference(s.Said[wordTime], median(near)))
	}
	switch {
	case c.n() >= leastTrials && s.isFaster(c):
		s.keep()
		return Keep
	case s.trials >= batch, (s.trials > 1 || c.n() >= leastTrials) && s.isSlower(c):
		return s.next()
	}
	return Open
}

// difference returns the difference of two times in parts of their sum: 0 if they are equal, 2000 if
// the first is half as long again. It is a whole number: all processors come to the same.
func difference(ns, other int64) int64 {
	const longestTime = 1 << 40 // of a time, ns: 18 minutes
	ns, other = min(max(ns, 1), longestTime), min(max(other, 1), longestTime)
	return (ns - other) * unit / (ns + other)
}

// relativeTo returns the difference of two times from the differences of each to a third one. These are
// the hyperbolic tangents of halved logarithms of ratios.
func relativeTo(d, by int64) int64 {
	return max(-unit, min((d-by)*unit/max(unit-d*by/unit, 1), unit))
}

// addTrial adds a trial in place of the oldest one.
func (c *candidate) addTrial(d int64) {
	if len(c.latest) == keptTrials {
		c.latest = slices.Delete(c.latest, 0, 1)
	}
	c.latest = append(c.latest, d)
}

// n is the number of trials; 0: it was not tried.
func (c *candidate) n() int64 { return int64(len(c.latest)) }

// median returns the median difference; 0: there is none.
func (c *candidate) median() int64 {
	if len(c.latest) == 0 {
		return 0
	}
	return median(c.latest)
}

// middle returns the median difference, [clamp].
func (c *candidate) middle() int64 { return clamp(c.median()) }

// clamp returns a difference cut to ±maxDifference.
func clamp(d int64) int64 { return max(-maxDifference, min(d, maxDifference)) }

// variance returns the variance of all candidates' differences around their middle ones. It is made
// of median deviations: single very long calls don't change these.
func (s *Search) variance() int64 {
	sum, n := int64(assumedWeight*assumedDeviation*assumedDeviation), int64(assumedWeight)
	for i := range s.all {
		c := &s.all[i]
		if c.n() < leastTrials {
			continue
		}
		var off [keptTrials]int64
		middle := c.middle()
		for k, d := range c.latest {
			off[k] = max(clamp(d)-middle, middle-clamp(d))
		}
		m := median(off[:c.n()])
		sum, n = sum+(c.n()-1)*m*m*22/10, n+c.n()-1 // 1.48 squared: a normal distribution's deviation is so much larger
	}
	return sum / n
}

// isFaster reports whether a candidate is surely faster than the holder, by the margin.
func (s *Search) isFaster(c *candidate) bool {
	by := -margin - c.middle()
	return by > 0 && by*by*c.n()*10 >= surelyFaster*s.variance()
}

// isPromising reports whether a candidate seems faster by the margin.
func (c *candidate) isPromising() bool { return c.middle() < -margin }

// isSlower reports whether it surely isn't.
func (s *Search) isSlower(c *candidate) bool {
	by := c.middle() + margin
	return by >= 0 && by*by*c.n()*10 >= surelySlower*s.variance()
}

// compare keeps a time of the holder.
func (s *Search) compare(ns int64) {
	if len(s.bench) < window {
		s.bench = append(s.bench, ns)
		return
	}
	s.bench[s.benchAt] = ns
	s.benchAt = (s.benchAt + 1) % window
}

// keep makes the candidate the holder. The others' differences are from now on by its time.
func (s *Search) keep() {
	now := &s.all[s.tried]
	by := now.median()
	old := &s.all[s.holds]
	for _, d := range now.latest {
		old.addTrial(-d) // the other way round
	}
	for i := range s.all {
		c := &s.all[i]
		if c.n() == 0 || c == now || c == old {
			continue
		}
		n := max(c.n()*now.n()/(c.n()+now.n()), 1) // both are uncertain
		c.latest = slices.Delete(c.latest, 0, int(c.n()-n))
		for k := range c.latest {
			c.latest[k] = relativeTo(c.latest[k], by)
		}
	}
	now.latest = now.latest[:0]
	s.holds, s.heldSince = s.tried, s.calls
	s.bench, s.benchAt = s.bench[:0], 0
	clear(s.recent)
	s.failed, s.gap = 0, s.every
	s.turn()
}

// next ends a batch. The candidate goes on if it may still be the fastest.
func (s *Search) next() Verdict {
	was := s.tried
	s.drop()
	if s.tried != was {
		return Drop
	}
	s.ready = true
	return Open
}

// drop goes on to the next candidate. After a round in vain trials become rarer.
func (s *Search) drop() {
	if !s.all[s.tried].isPromising() {
		s.failed++
	}
	if s.failed >= len(s.all)-1 {
		s.failed, s.gap = 0, min(2*s.gap, mostGap*s.every)
		s.round++
	}
	s.turn()
}

// turn makes it the next candidate's turn.
func (s *Search) turn() {
	s.batch++
	s.all[s.tried].order, s.all[s.tried].round = s.batch, s.round
	s.trials, s.ready = 0, false
	best, least, variance := -1, int64(0), s.variance()
	for k := range s.all {
		i := (s.tried + 1 + k) % len(s.all)
		if i == s.holds {
			continue
		}
		if rank := s.rank(&s.all[i], variance); best < 0 || rank < least {
			best, least = i, rank
		}
	}
	if best >= 0 {
		s.tried = best
	}
}

// rank orders candidates by how fast they may be. Untried ones come first, then those with
// few trials, none of them in this round or the last.
func (s *Search) rank(c *candidate, variance int64) int64 {
	middle, n := c.middle(), c.n()
	switch {
	case c.faulty:
		middle, n = maxDifference, 1
	case n == 0:
		return math.MinInt64
	case n < enoughTrials && c.round+1 < s.round:
		return math.MinInt64 + unit + middle
	}
	return middle - int64(math.Sqrt(float64(2*variance/n))) - waitBonus*int64(s.batch-c.order)
}

// median returns the middle one of some numbers, the lower one of two.
func median(all []int64) int64 {
	var sorted [max(window, keptTrials)]int64
	some := sorted[:copy(sorted[:], all)]
	slices.Sort(some)
	return some[(len(some)-1)/2]
}

// ratio returns a candidate's time in times of the holder's, about.
func (c *candidate) ratio() float64 {
	d := float64(c.median())
	return (unit + d) / max(unit-d, 1)
}

// Line describes the search in a line.
func (s *Search) Line() string {
	now := fmt.Sprintf("one call of %d tries another", s.gap)
	if s.frozen {
		now = "frozen"
	}
	return fmt.Sprintf("%s holds since call %d of %d; %s", s.all[s.holds].name, s.heldSince, s.calls, now)
}

// Explain describes each candidate.
func (s *Search) Explain() string {
	var text strings.Builder
	fmt.Fprintln(&text, s.Line())
	for i, c := range s.all {
		switch {
		case i == s.holds && len(s.bench) > 0:
			fmt.Fprintf(&text, "  %s: %.1f µs, the median of its last %d calls on the slowest rank\n", c.name, float64(median(s.bench))/1e3, len(s.bench))
		case i == s.holds:
			fmt.Fprintf(&text, "  %s: not compared yet\n", c.name)
		case c.faulty:
			fmt.Fprintf(&text, "  %s: a rank failed with it\n", c.name)
		case c.n() == 0:
			fmt.Fprintf(&text, "  %s: not tried yet\n", c.name)
		default:
			fmt.Fprintf(&text, "  %s: %.2f of its time\n", c.name, c.ratio())
		}
	}
	return text.String()
}
