// Command sums compares the ways to sum floats on all ranks: in free order, along the tree over
// ranks, and exactly. The ways take turns in one launch.
//
//	tierflow run -n 4 -- sums -bytes 4194304 -turns 15
//
// Rank 0 prints the median of each way, of the slowest rank in each turn, and its ratio to free
// order with the quartiles of the turns' ratios. The digests of exact sums are the same for any
// number of ranks, because contributions are.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/exact"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/testdata/apps/contest"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("sums: ", err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("sums", flag.ContinueOnError)
	bytes := f.Int("bytes", 4<<20, "bytes of float32 to sum, at least 4")
	turns := f.Int("turns", 9, "turns, at least 1")
	parts := f.Int("contributions", 0, "of all ranks together, at least one each; 0: one each")
	if err := f.Parse(args); err != nil {
		return err
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	if *parts == 0 {
		*parts = comm.Size()
	}
	if *bytes < 4 || *turns < 1 || *parts < comm.Size() {
		return fmt.Errorf("-bytes %d -turns %d -contributions %d: allowed are 4 or more, 1 or more, %d or more", *bytes, *turns, *parts, comm.Size())
	}
	all, err := compare(ctx, comm, *bytes/4, *parts, *turns)
	if err == nil && comm.Rank() == 0 {
		for _, w := range all {
			fmt.Fprintf(out, "order=%s %s digest %s\n", w.Name, w.Against(&all[0].Way), w.hash)
		}
	}
	return err
}

// way is a way to sum.
type way struct {
	contest.Way
	hash string // of its sum
}

// contribution has exponents from -120 to 120: the same on any rank.
func contribution(number, n int) []float32 {
	draw := rand.New(rand.NewPCG(7, uint64(number)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((draw.Float64()*2 - 1) * math.Exp2(float64(i*220/n)-110+float64(draw.IntN(20))-10))
	}
	return x
}

// compare runs all ways in turns.
func compare(ctx context.Context, c *planner.Comm, n, contributions, turns int) (all []*way, err error) {
	var mine [][]float32
	for i := c.Rank(); i < contributions; i += c.Size() {
		mine = append(mine, contribution(i, n))
	}
	dst := make([]float32, n)
	ordered, err := c.DupWith(ctx, "order=tree")
	if err != nil {
		return nil, err
	}
	free, err := planner.PrepareAllreduce(ctx, c, dst, dst, tasks.Sum)
	if err != nil {
		return nil, err
	}
	tree, err := planner.PrepareAllreduce(ctx, ordered, dst, dst, tasks.Sum)
	if err != nil {
		return nil, err
	}
	exactly, err := exact.New[float32](ctx, c, n, contributions, nil)
	if err != nil {
		return nil, err
	}
	defer exactly.Free()
	first := func(sum *planner.Collective) func(context.Context) error {
		return func(ctx context.Context) error {
			copy(dst, mine[0])
			for _, x := range mine[1:] {
				for i, v := range x {
					dst[i] += v
				}
			}
			return sum.Run(ctx)
		}
	}
	ways := []*contest.Way{
		{Name: "free", Do: first(free)},
		{Name: "tree", Do: first(tree)},
		{Name: "exact", Do: func(ctx context.Context) error { return exactly.Run(ctx, mine, dst) }},
	}
	if err := contest.Run(ctx, c, turns, ways); err != nil {
		return nil, err
	}
	for _, w := range ways {
		if err := w.Do(ctx); err != nil {
			return nil, err
		}
		h := sha256.New()
		_ = binary.Write(h, binary.LittleEndian, dst) // a hash takes all
		all = append(all, &way{*w, fmt.Sprintf("%x", h.Sum(nil)[:8])})
	}
	return all, nil
}
