package main

import (
	"context"
	"errors"
	"slices"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// check returns an error on all ranks unless the parts are sorted, follow each other and have the
// records that there were.
func check(ctx context.Context, c *planner.Comm, before, after []record) error {
	type part struct {
		Count           int
		Lowest, Highest record // if there are any
	}
	mine, all := part{Count: len(after)}, make([]part, c.Size())
	if len(after) > 0 {
		mine.Lowest, mine.Highest = after[0], after[len(after)-1]
	}
	if err := planner.Allgather(ctx, c, []part{mine}, all); err != nil {
		return err
	}
	wrong := !slices.IsSortedFunc(after, order)
	all = slices.DeleteFunc(all, func(p part) bool { return p.Count == 0 })
	for i := 1; i < len(all); i++ {
		wrong = wrong || order(all[i-1].Highest, all[i].Lowest) >= 0
	}
	lost, err := planner.AllreduceValue(ctx, c, digest(before)-digest(after), tasks.Sum)
	if err != nil {
		return err
	}
	if wrong, err = c.Any(ctx, wrong || lost != 0); err == nil && wrong {
		err = errors.New("the records are not sorted, or not the same")
	}
	return err
}

// digest is the same whatever the order; those of parts add up.
func digest(all []record) (sum uint64) {
	for _, r := range all {
		sum += mix(r.Key ^ uint64(r.Rank)<<48 ^ uint64(r.Index)<<20)
	}
	return sum
}
