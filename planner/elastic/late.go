package elastic

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// lateness is how often in a row ranks of a communicator were named as late, by their numbers. A rank
// that has come to a collective since is named for the first time again.
type lateness map[int]int

// usualNamings is the default of [Options.LeaveOut] where calls have a limit.
const usualNamings = 2

// namings returns after how many of them a rank is left out; 0: it never is.
func (o *Options) namings(c *planner.Comm) int {
	usual := 0
	if calls.CallTimeout(c) > 0 {
		usual = usualNamings
	}
	return max(0, cmp.Or(o.LeaveOut, usual))
}

// note takes in the error of f on c. It returns the ranks named at least so many times, and those named once less, ascending.
func (l *lateness) note(c *planner.Comm, err error, most int) (hung, almost []int) {
	before := *l
	*l = nil
	late, ok := errors.AsType[*planner.LateError](err)
	if !ok || len(late.Circle) > 0 || most == 0 {
		return nil, nil
	}
	*l = lateness{}
	under, _, err := raw.Under(c)
	if err != nil {
		return nil, nil
	}
	ranks := under.Ranks()
	for _, named := range late.Late { // perhaps on a communicator made from c
		r := slices.Index(ranks, levels.Rank(named.State.Rank))
		if r < 0 || r == c.Rank() || named.State.Votes != "" { // it waits for others, as this one
			continue
		}
		(*l)[r] = 1
		if come, _ := named.State.HasCome(uint64(under.ID()), 0); !come {
			(*l)[r] += before[r]
		}
	}
	for r, n := range *l {
		switch {
		case n >= most:
			hung = append(hung, r)
		case n == most-1:
			almost = append(almost, r)
		}
	}
	slices.Sort(hung)
	slices.Sort(almost)
	return hung, almost
}

// moveTo goes over to the next communicator.
func (l *lateness) moveTo(change planner.Change) {
	next := lateness{}
	for r, old := range change.Old {
		if n := (*l)[old]; n > 0 {
			next[r] = n
		}
	}
	*l = next
}
