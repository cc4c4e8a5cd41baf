package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// NoColor is a rank's color if it wants no communicator from [Comm.Split].
const NoColor = -1

// Split makes a communicator of the ranks with the same color, ordered by key and
// then by rank. Every rank of c must call it; with [NoColor] a rank gets nil.
// Messages of different communicators never mix, and a failure breaks only the
// communicators with the failed rank. The new one ends with the
// communicator of all ranks, or by its own Close.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	if color < NoColor {
		return nil, fmt.Errorf("split: color %d is neither NoColor nor from 0 on", color)
	}
	return c.split(ctx, splitCall, color, key)
}

// split makes the communicator of Split and Dup. Its number is drawn by its first rank.
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
	var d *Comm
	some, err := c.derive(executor.CommID(mine[0].id), mine, seq)
	if err == nil {
		d, err = c.wrap(some)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", why, err)
		c.comm.Disown(seq, err)
		return nil, err
	}
	return d, nil
}

// Dup makes a communicator of the same ranks. Messages on it never mix with
// those of c. Every rank of c must call it.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	return c.split(ctx, dupCall, 0, c.Rank())
}

// DupWith is [Comm.Dup] with other forced plans in place of the options',
// the order of reductions included. Every rank must give the same.
func (c *Comm) DupWith(ctx context.Context, plan string) (*Comm, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	const origin = "DupWith"
	forced, err := choose.ParseForced(plan, origin, c.registry)
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

// choice is the arguments of one rank to Split.
type choice struct {
	rank           levels.Rank // of c
	color, key, id int64       // id: drawn by the rank, see [executor.Endpoint.Draw]
}

// tell gathers the choices of all ranks, in call seq of the communicator. If the
// call fails here it may have ended well on others. They then have communicators with this
// rank in them.
func (b *base) tell(ctx context.Context, why purpose, color, key int) (all []choice, seq uint32, err error) {
	id, err := b.comm.Endpoint().Draw()
	if err != nil {
		return nil, 0, err
	}
	const fields = 3
	ranks := b.topology.Size()
	table := make([]int64, fields*ranks)
	copy(table[fields*int(b.comm.Rank()):], []int64{int64(color), int64(key), int64(id)})
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(len(table)), Type: tasks.Int64, Op: tasks.Sum, InPlace: true}
	run, err := b.internal(r, why, asBytes(table))
	if err != nil {
		return nil, 0, err
	}
	err = run.Do(ctx)
	seq, started := run.Seq()
	if err != nil {
		if started {
			b.comm.Disown(seq, err)
		}
		return nil, 0, err
	}
	all = make([]choice, ranks)
	for r := range all {
		row := table[fields*r:]
		all[r] = choice{levels.Rank(r), row[0], row[1], row[2]}
	}
	return all, seq, nil
}

// derive makes the base of a communicator of some ranks.
func (b *base) derive(id executor.CommID, members []choice, seq uint32) (some base, err error) {
	ranks := make([]levels.Rank, len(members))
	for i, m := range members {
		ranks[i] = m.rank
	}
	some, world, err := b.subset(ranks)
	if err == nil {
		some.comm, err = b.comm.Derive(id, world, seq)
	}
	return some, err
}

// wrap returns a Comm on a base made from c's.
func (c *Comm) wrap(b base) (*Comm, error) {
	d := newComm(b, c.world, c.policy.clone())
	d.derived = true
	return d, d.unify(&d.base)
}
