package verdict

import (
	"fmt"
	"slices"
	"time"
)

// A rank of a moving job holds up the others if it waits less than littleWait of the median, and they wait
// for muchWait of the time or more.
const (
	littleWait = 0.2
	muchWait   = 0.3
)

// fewestRanks are needed to tell one from the others.
const fewestRanks = 3

// Straggler returns the ranks that hold up the others of a moving job. waited is each rank's time with
// nothing to do, of the time in; -1: unknown. No clocks are compared: in calls of all ranks
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
		rankText(ranks), verb(ranks, "holds", "hold"), 100*median.Seconds()/in.Seconds(), verb(ranks, "it waits", "they wait"), 100*waited[ranks[0]].Seconds()/in.Seconds())}
}
