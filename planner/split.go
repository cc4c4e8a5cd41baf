package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// NoColor is the color of a rank that wants no communicator from [Comm.Split].
const NoColor = -1

// Split makes a communicator of the ranks with the same color, ordered by key and
// then by rank. Every rank of c must call it; one that gives [NoColor] gets nil.
// Messages of different communicators never mix, and a failure breaks only the
// communicators that the failed rank is in. The new one ends with the
// communicator of all ranks, or by its own Close.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if err := c.usable(ctx); err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	if color < NoColor {
		return nil, fmt.Errorf("split: color %d is neither NoColor nor from 0 on", color)
	}
	all, err := c.tell(ctx, color, key)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	first := slices.MaxFunc(all, func(a, b choice) int { return cmp.Compare(a.nextID, b.nextID) }).nextID
	colors := make([]int64, 0, len(all))
	for _, ch := range all {
		colors = append(colors, ch.color)
	}
	slices.Sort(colors)
	colors = slices.Compact(colors)
	if color == NoColor {
		return nil, nil
	}
	place, _ := slices.BinarySearch(colors, int64(color))
	mine := slices.DeleteFunc(slices.Clone(all), func(ch choice) bool { return ch.color != int64(color) })
	slices.SortStableFunc(mine, func(a, b choice) int { return cmp.Compare(a.key, b.key) })
	return c.derive(uint32(first)+uint32(place), mine)
}

// Dup makes a communicator of the same ranks, on which messages never mix with
// those of c. Every rank of c must call it.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	if err := c.usable(ctx); err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	return c.Split(ctx, 0, c.Rank())
}

// DupWith is [Comm.Dup] with other forced plans in place of all that the options say,
// of the order of reductions too. Every rank must give the same.
func (c *Comm) DupWith(ctx context.Context, plan string) (*Comm, error) {
	if err := c.usable(ctx); err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	forced, origin, err := parseForced(plan, "DupWith", c.registry)
	if err != nil {
		return nil, err
	}
	d, err := c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	d.forced, d.origin = forced, origin
	return d, nil
}

// choice is what one rank says in Split.
type choice struct {
	rank               levels.Rank // of c
	color, key, nextID int64
}

// tell gathers the choices of all ranks. Forced plans are for the caller's
// collectives: one that can't do this request must not keep it from splitting.
func (c *Comm) tell(ctx context.Context, color, key int) ([]choice, error) {
	const fields = 3
	table := make([]int64, fields*c.Size())
	copy(table[fields*c.Rank():], []int64{int64(color), int64(key), int64(c.comm.Endpoint().NextID())})
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(table)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	d, err := policy{registry: c.registry}.choose(r, c.topology)
	if err != nil {
		return nil, err
	}
	col, err := c.decided(&d, r, nil, asBytes(table))
	if err != nil {
		return nil, err
	}
	if err := col.Run(ctx); err != nil {
		return nil, err
	}
	all := make([]choice, c.Size())
	for r := range all {
		row := table[fields*r:]
		all[r] = choice{levels.Rank(r), row[0], row[1], row[2]}
	}
	return all, nil
}

// derive makes this rank's end of a communicator.
func (c *Comm) derive(id uint32, members []choice) (*Comm, error) {
	ranks, world := make([]levels.Rank, len(members)), make([]levels.Rank, len(members))
	mine := c.comm.Ranks()
	for i, m := range members {
		ranks[i], world[i] = m.rank, mine[m.rank]
	}
	t, err := c.topology.Sub(ranks)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	return &Comm{
		comm: c.comm.Endpoint().Make(id, world), world: c.world, topology: t,
		policy: c.policy, memo: &memo{}, derived: true,
		cache: map[tasks.Request]*Collective{},
	}, nil
}
