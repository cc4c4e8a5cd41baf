package verdict

import (
	"fmt"
	"slices"
	"time"
)

// Of moving ranks, one that waits less than littleWait of the median holds up the others, if these wait
// for muchWait of the time or more.
const (
	littleWait = 0.2
	muchWait   = 0.3
)

// fewestRanks are needed to tell one from the others.
const fewestRanks = 3

// Straggler returns the ranks that hold up the others of a moving job. waited is how long each rank had
// nothing to do in some time, -1 if that is unknown. No clocks are compared: in calls that all ranks need
// the late one waits least. nil: nobody holds up the others.
func Straggler(waited []time.Duration, in time.Duration) *Finding {
	var known []time.Duration
	for _, d := range waited {
		if d >= 0 {
			known = append(known, d)
		}
	}
	if len(known) < fewestRanks || in <= 0 {
		return nil
	}
	slices.Sort(known)
	median := known[len(known)/2]
	if median < time.Duration(muchWait*float64(in)) {
		return nil
	}
	var ranks []int
	for r, d := range waited {
		if d >= 0 && float64(d) < littleWait*float64(median) {
			ranks = append(ranks, r)
		}
	}
	if len(ranks) == 0 || 2*len(ranks) >= len(known) { // half of all are no exception: leaders have more to do
		return nil
	}
	return &Finding{Class: SlowRank, Ranks: ranks, For: median, Text: fmt.Sprintf("%s %s up the others, which wait for %.0f %% of the time; %s for %.0f %%",
		rankText(ranks), holds(ranks), 100*median.Seconds()/in.Seconds(), map[bool]string{true: "it waits", false: "they wait"}[len(ranks) == 1], 100*waited[ranks[0]].Seconds()/in.Seconds())}
}

func holds(ranks []int) string {
	if len(ranks) == 1 {
		return "holds"
	}
	return "hold"
}
