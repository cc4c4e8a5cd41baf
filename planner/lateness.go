package planner

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// lateness is how often in a row ranks of a communicator were named as late, by their numbers. A rank
// that has come to a collective since is named for the first time again.
type lateness map[int]int

// usualNamings is the default of [ElasticOptions.LeaveOut] where calls have a limit.
const usualNamings = 2

// namings returns after how many of them a rank is left out; 0: it never is.
func (o *ElasticOptions) namings() int {
	usual := 0
	if limit, err := o.Options.settings().callTimeout(); err == nil && limit > 0 {
		usual = usualNamings
	}
	return max(0, cmp.Or(o.LeaveOut, usual))
}

// note takes in the error of f on c. It returns the ranks named at least so many times, and those named once less, ascending.
func (l *lateness) note(c *Comm, err error, most int) (hung, almost []int) {
	before := *l
	*l = nil
	late, ok := errors.AsType[*LateError](err)
	if !ok || len(late.Circle) > 0 || most == 0 {
		return nil, nil
	}
	*l = lateness{}
	ranks := c.comm.Ranks()
	for _, named := range late.Late { // perhaps on a communicator made from c
		r := slices.Index(ranks, levels.Rank(named.State.Rank))
		if r < 0 || r == c.Rank() || named.State.Votes != "" { // it waits for others, as this one
			continue
		}
		(*l)[r] = 1
		if come, _ := named.State.HasCome(uint64(c.comm.ID()), 0); !come {
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
func (l *lateness) moveTo(change Change) {
	next := lateness{}
	for r, old := range change.Old {
		if n := (*l)[old]; n > 0 {
			next[r] = n
		}
	}
	*l = next
}

// mayLeaveOut is an error unless the others of c may go on without ranks of it.
func (c *Comm) mayLeaveOut(late []int) error {
	without, err := c.others(late)
	if err != nil {
		return err
	}
	return c.comm.MayLeaveOut(without)
}

// unheard breaks c, and returns those of some ranks whose programs don't notice it soon.
func (c *Comm) unheard(ctx context.Context, late []int) (ranks []int, err error) {
	members, err := c.others(late)
	if err != nil {
		return nil, err
	}
	if members, err = c.comm.Unheard(ctx, members); err != nil {
		return nil, err
	}
	for _, r := range members {
		ranks = append(ranks, int(r))
	}
	return ranks, nil
}
