package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

var (
	errOtherRanks = errors.New("the communicator is neither what the collective's has become, nor made of some of its ranks")
	errRootGone   = errors.New("the root is none of its ranks")
	errCounts     = errors.New("blocks that differ are of ranks that may be gone; make it anew")
)

// On makes the same collective on another communicator: a successor of this one's, as [Comm.Shrink] and
// [Comm.Grow] return it, or one of some of its ranks, by [Comm.Split]. The buffers are the same: blocks are fewer,
// or more if there is room for them, and lie by the new ranks. A root keeps being the same process. All ranks call
// it in the order of creating collectives there. Urgency and operation stay.
//
// It is an error if the root is gone, and for collectives with blocks that differ.
func (c *Collective) On(ctx context.Context, next *Comm) (*Collective, error) {
	if c == nil || c.run == nil || ctx == nil {
		return nil, c.unusable("make anew")
	}
	if err := next.checkMade(); err != nil {
		return nil, fmt.Errorf("%v: %w", c.request, err)
	}
	r := c.request
	if r.Differ() || c.copies {
		return nil, fmt.Errorf("%v on other ranks: %w", r, errCounts)
	}
	places, err := c.comm.placesOn(next)
	if err != nil {
		return nil, fmt.Errorf("%v on other ranks: %w", r, err)
	}
	if r.Rooted() {
		at := slices.Index(places, int(r.Root))
		if at < 0 {
			return nil, fmt.Errorf("%v on other ranks: %w", r, errRootGone)
		}
		r.Root = levels.Rank(at)
	}
	made, err := next.collective(ctx, r, c.send, c.recv)
	if err != nil {
		return nil, err
	}
	return made, made.SetUrgency(c.urgency)
}

// placesOn returns for each rank of next the same process's rank in c; -1: it has none.
func (c *Comm) placesOn(next *Comm) ([]int, error) {
	places := make([]int, c.Size())
	for r := range places {
		places[r] = r
	}
	old := c
	for old != next {
		change := old.succession.get()
		if change.Comm == nil {
			break
		}
		moved := make([]int, len(change.Old))
		for r, before := range change.Old {
			moved[r] = -1
			if before >= 0 {
				moved[r] = places[before]
			}
		}
		places, old = moved, change.Comm
	}
	if old == next {
		return places, nil
	}
	if old.world != next.world {
		return nil, errOtherRanks
	}
	ranks := old.comm.Ranks()
	var some []int
	for _, r := range next.comm.Ranks() {
		at := slices.Index(ranks, r)
		if at < 0 {
			return nil, errOtherRanks
		}
		some = append(some, places[at])
	}
	return some, nil
}
