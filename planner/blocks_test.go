package planner_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Blocks come to their places on all layouts, apart and in place, equal and not, in
// one pass and in several, flat and through levels.
func TestBlocks(t *testing.T) {
	topologies := []string{"a:3,b:1,c:2", "2x2x2", "1", "5", "3x2", "4x2/rr"}
	if testing.Short() {
		topologies = topologies[:2]
	}
	for _, topo := range topologies {
		for _, plan := range []string{"", "shape=flat", "fs=8,w=2", "shape=han-lockstep,fs=64"} {
			succeed(t, topo, &planner.Options{Plan: plan}, func(ctx context.Context, c *planner.Comm) error {
				for _, r := range blockRequests(c.Size()) {
					if err := runCase[float64](ctx, c, r); err != nil {
						return fmt.Errorf("%s under %q: %w", topo, plan, err)
					}
				}
				return nil
			})
		}
	}
}

// blockRequests lists requests of all collectives with blocks.
func blockRequests(size int) (all []tasks.Request) {
	many := 1030 // in segments of one element more than one pass
	if size > 6 {
		many = 130 // where that would take long
	}
	for _, n := range []int{0, 1, 7, many} {
		for _, coll := range tasks.Requestable() {
			r := tasks.Request{Coll: coll, Count: int64(n), Type: tasks.Float64, Root: levels.Rank(size / 2)}
			if !r.Blocks() {
				continue
			}
			if coll == tasks.Alltoall {
				r.Count = int64(min(n, 130)) // each rank has a block for each other one: passes are as many sooner
			}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			for _, r.InPlace = range []bool{false, true} {
				if n > 7 && r.InPlace && testing.Short() {
					continue // passes take long
				}
				all = append(all, r)
				if n == 7 && (coll == tasks.Allgather || coll == tasks.ReduceScatter || coll == tasks.Alltoall) { // never in passes
					all = append(all, differing(r, size))
				}
			}
		}
	}
	return all
}

// differing gives every third rank none of r's count, the next half of it and the
// next all.
func differing(r tasks.Request, size int) tasks.Request {
	if r.Coll == tasks.Alltoall {
		return differingByPair(r, size)
	}
	counts := make([]int, size)
	for i := range counts {
		counts[i] = (i + 1) % 3 * int(r.Count) / 2
	}
	all, err := tasks.NewCounts(counts)
	if err != nil {
		panic(err)
	}
	if r.Count = all.Max(); r.Count > 0 {
		r.Counts = all
	}
	return r
}

// differingByPair does so with pairs of ranks, both ways.
func differingByPair(r tasks.Request, size int) tasks.Request {
	rows := make([][]int, size)
	for from := range rows {
		for to := range size {
			rows[from] = append(rows[from], (from+to+1)%3*int(r.Count)/2)
		}
	}
	var err error
	if r.Matrix, err = tasks.NewMatrix(rows); err != nil {
		panic(err)
	}
	if r.Count = r.Matrix.Max(); r.Count == 0 {
		r.Matrix = tasks.Matrix{}
	}
	return r
}

// One-shot calls of blocks that differ are kept apart by their counts, and each rank
// may work in place or not as it likes.
func TestOneShotCounts(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		for round := range 4 {
			for _, counts := range [][]int{{3, 0, 1, 2}, {0, 3, 1, 2}, {0, 0, 0, 0}, {2, 2, 2, 2}} {
				if err := oneShots(ctx, c, counts, (c.Rank()+round)%2 == 0); err != nil {
					return fmt.Errorf("counts %v: %w", counts, err)
				}
			}
		}
		return nil
	})
}

// oneShots gathers and reduces blocks in which each element is its place.
func oneShots(ctx context.Context, c *planner.Comm, counts []int, inPlace bool) error {
	before, n, sum := 0, counts[c.Rank()], 0
	for rank, k := range counts {
		if sum += k; rank < c.Rank() {
			before += k
		}
	}
	places := make([]int, sum)
	for i := range places {
		places[i] = i
	}
	all := make([]int, sum)
	mine := all[before:][:n]
	if !inPlace {
		mine = make([]int, n)
	}
	copy(mine, places[before:])
	if err := planner.Allgatherv(ctx, c, mine, all, counts); err != nil {
		return err
	}
	if diff := cmp.Diff(places, all); diff != "" {
		return fmt.Errorf("rank %d: allgather: %s", c.Rank(), diff)
	}
	for root := range counts {
		if err := rootedShots(ctx, c, counts, root, places, before, inPlace); err != nil {
			return err
		}
	}
	send := slices.Clone(places)
	mine = send[:n]
	if !inPlace {
		mine = make([]int, n)
	}
	if err := planner.ReduceScatterv(ctx, c, send, mine, counts, tasks.Sum); err != nil {
		return err
	}
	for i, got := range mine {
		if want := c.Size() * (before + i); got != want {
			return fmt.Errorf("rank %d: reducescatter: element %d is %d, want %d", c.Rank(), i, got, want)
		}
	}
	return nil
}

// rootedShots gathers places at a root and scatters them from there.
func rootedShots(ctx context.Context, c *planner.Comm, counts []int, root int, places []int, before int, inPlace bool) error {
	n := counts[c.Rank()]
	own := places[before:][:n]
	send, recv := slices.Clone(own), []int(nil)
	if c.Rank() == root {
		if recv = make([]int, len(places)); inPlace {
			send = recv[before:][:n]
			copy(send, own)
		}
	}
	if err := planner.Gatherv(ctx, c, send, recv, counts, root); err != nil {
		return err
	}
	if c.Rank() == root && !slices.Equal(recv, places) {
		return fmt.Errorf("root %d: gather: %v, want %v", root, recv, places)
	}
	send, recv = nil, make([]int, n)
	if c.Rank() == root {
		if send = slices.Clone(places); inPlace {
			recv = send[before:][:n]
		}
	}
	if err := planner.Scatterv(ctx, c, send, recv, counts, root); err != nil {
		return err
	}
	if !slices.Equal(recv, own) {
		return fmt.Errorf("rank %d: scatter from %d: %v, want %v", c.Rank(), root, recv, own)
	}
	return nil
}
