package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor"
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
	return c.split(ctx, splitCall, color, key)
}

// split makes the communicator that Split and Dup return. The first of its ranks leads
// it, and its number is the one that this rank has drawn.
func (c *Comm) split(ctx context.Context, why purpose, color, key int) (*Comm, error) {
	all, seq, err := c.tell(ctx, why, color, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", why, err)
	}
	if color == NoColor {
		return nil, nil
	}
	mine := slices.DeleteFunc(all, func(ch choice) bool { return ch.color != int64(color) })
	slices.SortStableFunc(mine, func(a, b choice) int { return cmp.Compare(a.key, b.key) })
	d, err := c.derive(executor.CommID(mine[0].id), mine, seq)
	if err != nil {
		err = fmt.Errorf("%s: %w", why, err)
		c.comm.Disown(seq, err)
		return nil, err
	}
	return d, nil
}

// Dup makes a communicator of the same ranks, on which messages never mix with
// those of c. Every rank of c must call it.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	if err := c.usable(ctx); err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	return c.split(ctx, dupCall, 0, c.Rank())
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
	rank           levels.Rank // of c
	color, key, id int64       // id: the number that the rank has drawn
}

// tell gathers the choices of all ranks, in call seq of the communicator. When that
// call fails here it may have ended well on others, who then have communicators with this
// rank in them.
func (c *Comm) tell(ctx context.Context, why purpose, color, key int) (all []choice, seq uint32, err error) {
	id, err := c.comm.Endpoint().Draw()
	if err != nil {
		return nil, 0, err
	}
	const fields = 3
	table := make([]int64, fields*c.Size())
	copy(table[fields*c.Rank():], []int64{int64(color), int64(key), int64(id)})
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(table)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	col, err := c.internal(r, why, asBytes(table))
	if err != nil {
		return nil, 0, err
	}
	err = col.Run(ctx)
	seq, started := col.run.Seq()
	if err != nil {
		if started {
			c.comm.Disown(seq, err)
		}
		return nil, 0, err
	}
	all = make([]choice, c.Size())
	for r := range all {
		row := table[fields*r:]
		all[r] = choice{levels.Rank(r), row[0], row[1], row[2]}
	}
	return all, seq, nil
}

// internal prepares a collective that is none of the caller's. Forced plans are not for
// it: one that can't do this request must not keep it from running.
func (c *Comm) internal(r tasks.Request, why purpose, buf []byte) (*Collective, error) {
	d, err := policy{registry: c.registry}.choose(r, c.topology)
	if err != nil {
		return nil, err
	}
	return c.decided(&d, r, why, nil, buf)
}

// derive makes this rank's end of a communicator.
func (c *Comm) derive(id executor.CommID, members []choice, seq uint32) (*Comm, error) {
	ranks, world := make([]levels.Rank, len(members)), make([]levels.Rank, len(members))
	mine := c.comm.Ranks()
	for i, m := range members {
		ranks[i], world[i] = m.rank, mine[m.rank]
	}
	t, err := c.topology.Sub(ranks)
	if err != nil {
		return nil, err
	}
	made, err := c.comm.Derive(id, world, seq)
	if err != nil {
		return nil, err
	}
	d := c.over(made, t)
	return d, d.unify()
}

// over is the face of a communicator that was made from c.
func (c *Comm) over(made *executor.Comm, t *levels.Topology) *Comm {
	return &Comm{
		comm: made, world: c.world, topology: t,
		policy: c.policy.own(), memo: &memo{}, derived: true,
		cache: map[tasks.Request]*Collective{},
	}
}
