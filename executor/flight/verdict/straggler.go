package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Ranks of a moving job hold up the others if they wait for less than littleWait of what the next one waits for,
// and all others wait for muchWait of the time or more. The others need not wait alike: leaders also work for
// their nodes.
const (
	littleWait = 1. / 3
	muchWait   = 0.3
)

// Straggler returns the ranks that hold up the others of a moving job. waited is each rank's time with
// nothing to do, of the time in; -1: unknown. nodes has the name of each rank's node; nil: they are unknown. No
// clocks are compared: in calls of all ranks the late one waits least. nil: nobody holds up the others.
func Straggler(waited []time.Duration, in time.Duration, nodes []string) *Finding {
	var known []int // by their waits
	for r, d := range waited {
		if d >= 0 {
			known = append(known, r)
		}
	}
	if in <= 0 {
		return nil
	}
	most := (len(known) - 1) / 2 // half of all are no exception: leaders have more to do
	others, wait := "others", "wait"
	if len(waited) == 2 && len(known) == 2 {
		most, others, wait = 1, "other", "waits"
	}
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(waited[a], waited[b]) })
	for k := 1; k <= most; k++ {
		slow, next := known[:k], waited[known[k]]
		if float64(waited[slow[k-1]]) >= littleWait*float64(next) || next < time.Duration(muchWait*float64(in)) || areLeaders(slow, nodes) {
			continue
		}
		median := waited[known[k+(len(known)-k)/2]]
		ranks := slices.Sorted(slices.Values(slow))
		return &Finding{Class: SlowRank, Ranks: ranks, For: median, Text: fmt.Sprintf("%s %s up the %s, which %s for %.0f %% of the time; %s for %.0f %%",
			rankText(ranks), verb(ranks, "holds", "hold"), others, wait, 100*median.Seconds()/in.Seconds(), verb(ranks, "it waits", "they wait"), 100*waited[ranks[0]].Seconds()/in.Seconds())}
	}
	return nil
}

// areLeaders reports whether the first ranks of all nodes, two or more, are among some: they work for their nodes.
func areLeaders(ranks []int, nodes []string) bool {
	seen := map[string]bool{}
	for r, node := range nodes {
		if !seen[node] && !slices.Contains(ranks, r) {
			return false
		}
		seen[node] = true
	}
	return len(seen) > 1
}
