package viz

import (
	"time"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// Overlap measures how much two levels work at the same time on one rank: for how long a step of
// each was in progress, and for how long steps of both were. Simultaneous steps of a level count
// once. Waiting for a peer is progress; to leave it out, pass only the events of other kinds of
// steps.
func Overlap(events []trace.Event, rank levels.Rank, levelA, levelB byte) (both, a, b time.Duration) {
	var busyA, busyB []interval
	for _, t := range tracks(events) {
		switch {
		case t.rank != rank:
		case t.level == levelA:
			busyA = t.busy()
		case t.level == levelB:
			busyB = t.busy()
		}
	}
	if levelA == levelB {
		busyB = busyA
	}
	return total(common(busyA, busyB)), total(busyA), total(busyB)
}

type interval struct{ begin, end int64 }

// busy is when any event of the track was in progress, as disjoint intervals in
// order.
func (t *track) busy() []interval {
	var all []interval
	for _, s := range t.slices { // by begin
		if n := len(all); n > 0 && s.Begin <= all[n-1].end {
			all[n-1].end = max(all[n-1].end, s.End)
		} else {
			all = append(all, interval{s.Begin, s.End})
		}
	}
	return all
}

// common is the intersection of two lists of disjoint intervals in order.
func common(a, b []interval) []interval {
	var all []interval
	for len(a) > 0 && len(b) > 0 {
		if x := (interval{max(a[0].begin, b[0].begin), min(a[0].end, b[0].end)}); x.begin < x.end {
			all = append(all, x)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return all
}

func total(all []interval) (d time.Duration) {
	for _, x := range all {
		d += time.Duration(x.end - x.begin)
	}
	return d
}
