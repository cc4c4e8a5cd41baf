package viz

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// slice is an event with its source's description.
type slice struct {
	trace.Event
	task, label string
	level       byte
	bytes       int64
}

// kind is the task's kind.
func (s *slice) kind() string { return kindOf(s.task) }

// kindOf returns the kind of a task: the ib of ib#3.
func kindOf(task string) string {
	kind, _, _ := strings.Cut(task, "#")
	return kind
}

// track is the events of one rank on one level, by begin and end.
type track struct {
	rank   levels.Rank
	level  byte
	slices []slice
}

// tracks sorts step events into tracks: by rank, outer levels first.
func tracks(events []trace.Event) []track {
	var all []track
	for _, e := range events {
		if e.Step == trace.WholeRun {
			continue
		}
		s := slice{Event: e}
		s.task, s.label, _, s.level, s.bytes = e.Source.Describe(e.Step)
		i, found := slices.BinarySearchFunc(all, track{rank: e.Rank, level: s.level}, compareTracks)
		if !found {
			all = slices.Insert(all, i, track{rank: e.Rank, level: s.level})
		}
		all[i].slices = append(all[i].slices, s)
	}
	for _, t := range all {
		slices.SortStableFunc(t.slices, func(a, b slice) int {
			return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Step, b.Step))
		})
	}
	return all
}

func compareTracks(a, b track) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(outside(a.level), outside(b.level)))
}

// outside numbers the usual levels from the outermost in, then all others.
func outside(symbol byte) int {
	const usual = "wism"
	if i := strings.IndexByte(usual, symbol); i >= 0 {
		return i
	}
	return len(usual) + int(symbol)
}

// lanes gives each event of the track the first lane that is free when it begins, so
// no two on a lane overlap. n is the number of lanes, as many as there are events at
// the same time.
func (t *track) lanes() (lane []int, n int) {
	lane = make([]int, len(t.slices))
	var free []int64 // per lane, when its last event ends
	for i, s := range t.slices {
		k := slices.IndexFunc(free, func(end int64) bool { return end <= s.Begin })
		if k < 0 {
			k = len(free)
			free = append(free, 0)
		}
		free[k] = s.End
		lane[i] = k
	}
	return lane, len(free)
}
