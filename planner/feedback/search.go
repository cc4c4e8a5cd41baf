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
// The idea is that of 6.2 in Fagg and others, Flexible Collective Communication Tuning
// Architecture Applied to Open MPI (2006).
package feedback

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a search.
const (
	few      = 3    // calls by which a candidate is dropped that is not faster
	window   = 9    // calls by which it takes the place of the one that holds, and latest calls of that
	surely   = 67   // of window² pairs of calls, in which the candidate must be the faster one
	usual    = 4    // usual calls before a trial whose times ranks tell each other
	slow     = 1.5  // times the one that holds: a candidate that slow is not tried again
	margin   = 1.03 // a candidate must be faster by that much to take its place; less is not worth a change
	longest  = 64   // times as many calls between trials when nothing has come of many
	leastGap = 2    // calls from one trial to the next
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
	failed int     // candidates in a row of which nothing came
	recent []int64 // times of the latest usual calls on this rank, a ring
	at     int     // in recent
	times  []int64 // of the candidate, as agreed
	bench  []int64 // of the one that holds, as agreed, a ring
	to     int     // in bench
}

// candidate is what is known of one.
type candidate struct {
	name   string
	ratio  float64 // to the one that held; 0: it was not tried
	faulty bool
}

// New returns a search among candidates with such names, of which one holds and one call of every
// is a trial, which must be 2 or more.
func New(names []string, holds, every int) *Search {
	s := &Search{Said: make([]int64, numWords), holds: holds, tried: holds, every: every, gap: every}
	for _, n := range names {
		s.all = append(s.all, candidate{name: n})
	}
	s.recent, s.bench, s.times = make([]int64, min(usual, every-1)), make([]int64, 0, window), make([]int64, 0, window)
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
	for _, ns := range s.Said[before:] {
		if ns > 0 {
			s.compare(ns)
		}
	}
	s.all[s.tried].faulty = false
	s.times = append(s.times, s.Said[time])
	ratio := float64(median(s.times)) / float64(max(median(s.bench), 1))
	drop := ratio*margin >= 1
	switch n := len(s.times); {
	case n < few && ratio < slow, n < window && !drop:
		return Open
	case drop, !s.isSure():
		s.all[s.tried].ratio = ratio
		s.drop()
		return Drop
	}
	s.keep(ratio)
	return Keep
}

// isSure reports whether the candidate is faster by more than chance. Equal ones pass in less than
// one of a hundred comparisons: the test of Mann and Whitney for 9 calls of each, at 1%.
func (s *Search) isSure() bool {
	faster := 0
	for _, mine := range s.times {
		for _, other := range s.bench {
			if mine < other {
				faster++
			}
		}
	}
	return faster*window*window >= surely*len(s.times)*len(s.bench)
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

// keep lets the candidate hold.
func (s *Search) keep(ratio float64) {
	for i := range s.all {
		s.all[i].ratio /= ratio // to the new one
	}
	s.all[s.holds].ratio, s.all[s.tried].ratio = 1/ratio, 0
	s.holds, s.since = s.tried, s.calls
	s.bench, s.to = append(s.bench[:0], s.times...), 0
	clear(s.recent)
	s.failed, s.gap = 0, s.every
	s.turn()
}

// drop goes on to the next candidate. When nothing has come of all of them trials become rarer.
func (s *Search) drop() {
	if s.failed++; s.failed >= len(s.all)-1 {
		s.failed, s.gap = 0, min(2*s.gap, longest*s.every)
	}
	s.turn()
}

// turn makes it the next candidate's turn.
func (s *Search) turn() {
	s.times, s.ready = s.times[:0], false
	for range s.all {
		if s.tried = (s.tried + 1) % len(s.all); s.tried != s.holds {
			return
		}
	}
}

// median returns the middle one of some times, the lower one of two.
func median(all []int64) int64 {
	var sorted [window]int64
	some := sorted[:copy(sorted[:], all)]
	slices.Sort(some)
	return some[(len(some)-1)/2]
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
		case c.ratio == 0:
			fmt.Fprintf(&text, "  %s: not tried yet\n", c.name)
		default:
			fmt.Fprintf(&text, "  %s: %.2f of its time\n", c.name, c.ratio)
		}
	}
	return text.String()
}
