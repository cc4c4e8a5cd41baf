// Package feedback decides which of some candidates is the fastest, while a program that goes on
// uses one of them. It is the state of such a search and has no clock: somebody else runs calls,
// takes their times and lets ranks agree on them. Equal times give equal verdicts, so all ranks of
// a job that hear the same come to the same.
//
//	switch candidate, turn := s.Next(); turn {
//	case feedback.Usual: // run by the one that holds, and Note its time
//	case feedback.First: // prepare the candidate, Say whether that went well, Ready, run by it
//	case feedback.Trial: // run by it, Say its time, and Judge
//	}
//
// A trial is compared with the usual calls right before it, since machines are slower at times. The
// median of these differences judges a candidate, and what is known of one is kept for its next
// turn. The turn is that of the one that may be the fastest: by its median, less the more trials it
// has had.
//
// The idea is that of 6.2 in Fagg and others, Flexible Collective Communication Tuning
// Architecture Applied to Open MPI (2006).
package feedback

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of a search.
const (
	batch    = 4   // trials of a candidate in a row
	few      = 3   // trials before which none takes the place of the one that holds
	settled  = 4   // trials from which on times alone decide a candidate's turn; with fewer it comes early every second round, since one batch may have been unlucky
	window   = 9   // latest calls of the one that holds, for people
	usual    = 4   // usual calls before a trial whose times ranks tell each other
	longest  = 64  // times as many calls between trials when nothing has come of many
	leastGap = 2   // calls from one trial to the next
	lasting  = 24  // latest trials by which a candidate is judged
	margin   = 150 // a candidate must be faster by that much, as [difference] has it, or 3%; less is not worth a change
)

// How sure a verdict must be: so many standard errors, squared, and in tenths.
const (
	surelyFaster = 30
	surelySlower = 10
)

// What is assumed of how much differences scatter, before there are some: their standard deviation,
// and how many differences that counts for.
const (
	scatter = 1000
	assumed = 4
)

// Differences of two times are in parts of their sum, of which there are so many.
const whole = 10_000

// stale is by how much a candidate seems faster for each batch in which it wasn't tried. No difference
// counts for more than most, which is half as long again.
const (
	stale = 10
	most  = 2000
)

// Turn says what a call is for.
type Turn uint8

// The turns of calls.
const (
	Usual Turn = iota // it runs by the candidate that holds
	First             // the first of a candidate, in which ranks connect: not judged
	Trial             // one by which a candidate is judged
)

// Verdict is what comes of a trial.
type Verdict uint8

// The verdicts.
const (
	Open Verdict = iota // the candidate is tried again
	Drop                // the one that holds stays
	Keep                // the candidate holds from now on
)

// Words of what ranks say, see [Search.Said].
const (
	wish     = iota // 1: the search is to be frozen
	fault           // 1: it didn't go well
	time            // of the trial, ns
	before          // of usual calls before it, ns; 0: none
	numWords = before + usual
)

// Search is the state of a search.
type Search struct {
	// Said is what this rank says: all ranks' Said are combined by their maximum, word by word,
	// before Ready and Judge.
	Said []int64

	all    []candidate
	holds  int
	tried  int // the candidate whose turn it is
	since  int // calls when holds began to hold
	calls  int
	every  int // calls from one trial to the next, without what came of trials
	gap    int // and with it
	left   int // usual calls until the next trial
	ready  bool
	frozen bool
	freeze bool    // this rank wishes it
	failed int     // batches in a row of which nothing came
	round  int     // rounds so far: one ends when as many batches have brought nothing as there are other candidates
	batch  int     // number of the last one
	recent []int64 // times of the latest usual calls on this rank, a ring
	at     int     // in recent
	trials int     // of the candidate, in this batch
	bench  []int64 // of the one that holds, as agreed, a ring
	to     int     // in bench
}

// candidate is what is known of one: how its trials differ from the usual calls before each.
type candidate struct {
	name   string
	latest []int64 // differences, the newest last
	order  int     // of its last batch among all
	round  int     // in which that was
	faulty bool
}

// New returns a search among candidates with such names, of which one holds and one call of every
// is a trial, which must be 2 or more.
func New(names []string, holds, every int) *Search {
	s := &Search{Said: make([]int64, numWords), holds: holds, tried: holds, every: every, gap: every}
	for _, n := range names {
		s.all = append(s.all, candidate{name: n, latest: make([]int64, 0, lasting)})
	}
	s.recent, s.bench = make([]int64, min(usual, every-1)), make([]int64, 0, window)
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

// Holds is the candidate that holds.
func (s *Search) Holds() int { return s.holds }

// Name is a candidate's name.
func (s *Search) Name(i int) string { return s.all[i].name }

// Next begins a call: it returns the candidate to run it by, and what for.
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
	s.recent[s.at] = max(ns, 1)
	s.at = (s.at + 1) % len(s.recent)
}

// Say fills in what this rank says of a first call or a trial: its time in ns, or that it failed.
func (s *Search) Say(ns int64, failed bool) {
	clear(s.Said)
	if s.freeze {
		s.Said[wish] = 1
	}
	if failed {
		s.Said[fault] = 1
	}
	s.Said[time] = ns
	copy(s.Said[before:], s.recent)
}

// Freeze wishes that trials end, on all ranks, from the next one on.
func (s *Search) Freeze() { s.freeze = true }

// Continue begins trials again.
func (s *Search) Continue() {
	s.freeze, s.frozen, s.failed, s.gap = false, false, 0, s.every
	s.left = s.every - 1
}

// Frozen reports whether trials have ended.
func (s *Search) Frozen() bool { return s.frozen }

// Ready hears what all ranks say before the first call of a candidate, and reports whether it may
// run by it.
func (s *Search) Ready() bool {
	s.ready = !s.stops()
	return s.ready
}

// stops drops the candidate if a rank wishes or has failed, and reports whether it did.
func (s *Search) stops() bool {
	if s.Said[wish] > 0 {
		s.frozen = true
		s.turn()
		return true
	}
	if s.Said[fault] > 0 {
		s.all[s.tried].faulty = true
		s.drop()
		return true
	}
	return false
}

// Judge hears what all ranks say of a trial.
func (s *Search) Judge() Verdict {
	if s.stops() {
		return Drop
	}
	var near []int64 // what disturbs the machine disturbs the calls before a trial too
	for _, ns := range s.Said[before:] {
		if ns > 0 {
			near = append(near, ns)
			s.compare(ns)
		}
	}
	c := &s.all[s.tried]
	c.faulty = false
	s.trials++
	if len(near) > 0 {
		c.note(difference(s.Said[time], median(near)))
	}
	switch {
	case c.n() >= few && s.isFaster(c):
		s.keep()
		return Keep
	case s.trials >= batch, (s.trials > 1 || c.n() >= few) && s.isSlower(c):
		return s.next()
	}
	return Open
}

// difference is how two times differ: 0 if they are equal, 2000 if the first is half as long again. It is a whole number, so that all processors come to
// the same.
func difference(ns, other int64) int64 {
	const longest = 1 << 40 // of a time, ns: 18 minutes
	ns, other = min(max(ns, 1), longest), min(max(other, 1), longest)
	return (ns - other) * whole / (ns + other)
}

// without is the difference of two times by that of each from a third one: of halved logarithms of
// ratios these are the hyperbolic tangents.
func without(d, by int64) int64 {
	return max(-whole, min((d-by)*whole/max(whole-d*by/whole, 1), whole))
}

// note adds a trial in place of the oldest one.
func (c *candidate) note(d int64) {
	if len(c.latest) == lasting {
		c.latest = slices.Delete(c.latest, 0, 1)
	}
	c.latest = append(c.latest, d)
}

// n is the number of trials; 0: it was not tried.
func (c *candidate) n() int64 { return int64(len(c.latest)) }

// median is the median difference; 0: there is none.
func (c *candidate) median() int64 {
	if len(c.latest) == 0 {
		return 0
	}
	return median(c.latest)
}

// middle is the median difference as far as it counts.
func (c *candidate) middle() int64 { return bounded(c.median()) }

// bounded is a difference as far as it counts.
func bounded(d int64) int64 { return max(-most, min(d, most)) }

// variance is that of differences around the middle ones, of all candidates. It is made of median
// deviations, which single calls that take very long don't change.
func (s *Search) variance() int64 {
	sum, n := int64(assumed*scatter*scatter), int64(assumed)
	for i := range s.all {
		c := &s.all[i]
		if c.n() < few {
			continue
		}
		var off [lasting]int64
		middle := c.middle()
		for k, d := range c.latest {
			off[k] = max(bounded(d)-middle, middle-bounded(d))
		}
		m := median(off[:c.n()])
		sum, n = sum+(c.n()-1)*m*m*22/10, n+c.n()-1 // 1.48 squared: of normal ones the deviation is so much larger
	}
	return sum / n
}

// isFaster reports whether a candidate is surely faster than the one that holds, by the margin.
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

// compare keeps a time of the candidate that holds.
func (s *Search) compare(ns int64) {
	if len(s.bench) < window {
		s.bench = append(s.bench, ns)
		return
	}
	s.bench[s.to] = ns
	s.to = (s.to + 1) % window
}

// keep lets the candidate hold. What is known of others is from now on by its time.
func (s *Search) keep() {
	now := &s.all[s.tried]
	by := now.median()
	old := &s.all[s.holds]
	for _, d := range now.latest {
		old.note(-d) // the other way round
	}
	for i := range s.all {
		c := &s.all[i]
		if c.n() == 0 || c == now || c == old {
			continue
		}
		n := max(c.n()*now.n()/(c.n()+now.n()), 1) // both are uncertain
		c.latest = slices.Delete(c.latest, 0, int(c.n()-n))
		for k := range c.latest {
			c.latest[k] = without(c.latest[k], by)
		}
	}
	now.latest = now.latest[:0]
	s.holds, s.since = s.tried, s.calls
	s.bench, s.to = s.bench[:0], 0
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

// drop goes on to the next candidate. When nothing has come of all of them trials become rarer.
func (s *Search) drop() {
	if !s.all[s.tried].isPromising() {
		s.failed++
	}
	if s.failed >= len(s.all)-1 {
		s.failed, s.gap = 0, min(2*s.gap, longest*s.every)
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

// rank orders candidates by how fast they may be. Those that were never tried come first, then those
// with few trials that have had none in this round and the last one.
func (s *Search) rank(c *candidate, variance int64) int64 {
	middle, n := c.middle(), c.n()
	switch {
	case c.faulty:
		middle, n = most, 1
	case n == 0:
		return math.MinInt64
	case n < settled && c.round+1 < s.round:
		return math.MinInt64 + whole + middle
	}
	return middle - int64(math.Sqrt(float64(2*variance/n))) - stale*int64(s.batch-c.order)
}

// median returns the middle one of some numbers, the lower one of two.
func median(all []int64) int64 {
	var sorted [max(window, lasting)]int64
	some := sorted[:copy(sorted[:], all)]
	slices.Sort(some)
	return some[(len(some)-1)/2]
}

// ratio is about how many times as long as the one that holds a candidate takes.
func (c *candidate) ratio() float64 {
	d := float64(c.median())
	return (whole + d) / max(whole-d, 1)
}

// Line says in a line what the search does.
func (s *Search) Line() string {
	now := fmt.Sprintf("one call of %d tries another", s.gap)
	if s.frozen {
		now = "frozen"
	}
	return fmt.Sprintf("%s holds since call %d of %d; %s", s.all[s.holds].name, s.since, s.calls, now)
}

// Explain says what is known of each candidate.
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
