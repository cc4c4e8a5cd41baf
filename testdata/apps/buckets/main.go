// Command buckets compares ways to sum 150 tensors on all ranks: through views of fused buckets,
// through copies into them, each tensor by itself, and all bytes in one collective. The ways take
// turns in one launch.
//
//	tierflow run -n 4 -- buckets -turns 15
//
// Rank 0 prints the median of each way, of the slowest rank in each turn, and its ratio to the one
// collective with the quartiles of the turns' ratios.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/fuse"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/testdata/apps/contest"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("buckets: ", err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("buckets", flag.ContinueOnError)
	kind := f.String("tensors", "resnet50", "resnet50, or uniform: log-uniform from 64 B to 9 MiB, as many bytes")
	turns := f.Int("turns", 9, "turns, at least 1")
	bucket := f.Int64("bucket", 0, "bytes of a bucket; 0: as prices say")
	scale := f.Int("scale", 1, "divides all sizes, at least 1")
	if err := f.Parse(args); err != nil {
		return err
	}
	sizes := map[string][]int{"resnet50": resnet50(), "uniform": uniform()}[*kind]
	if sizes == nil || *turns < 1 || *scale < 1 {
		return fmt.Errorf("-tensors %s -turns %d -scale %d: allowed are resnet50 and uniform, and 1 or more", *kind, *turns, *scale)
	}
	for i := range sizes {
		sizes[i] = max(1, sizes[i] / *scale)
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	all, err := compare(ctx, comm, sizes, *turns, *bucket)
	if err == nil && comm.Rank() == 0 {
		for _, w := range all {
			fmt.Fprintf(out, "way=%s %s\n", w.Name, w.Against(all[0]))
		}
	}
	return err
}

// compare runs all ways in turns.
func compare(ctx context.Context, c *planner.Comm, sizes []int, turns int, bucket int64) (all []*contest.Way, err error) {
	b, err := fuse.New[float32](c, sizes, &fuse.Options{Bucket: bucket})
	if err != nil {
		return nil, err
	}
	defer b.Free()
	total := 0
	for _, n := range sizes {
		total += n
	}
	whole, err := planner.Alloc[float32](c, total)
	if err != nil {
		return nil, err
	}
	defer planner.Free(c, whole)
	one, err := planner.PrepareAllreduce(ctx, c, whole, whole, tasks.Average)
	if err != nil {
		return nil, err
	}
	singles := make([]*planner.Collective, len(sizes))
	own := make([][]float32, len(sizes)) // memory of a framework
	for i := range sizes {
		own[i] = make([]float32, sizes[i])
		if singles[i], err = planner.PrepareAllreduce(ctx, c, b.View(i), b.View(i), tasks.Average); err != nil {
			return nil, err
		}
	}
	last := len(sizes) - 1
	step := func(ctx context.Context, put func(i int) error) error {
		for i := last; i >= 0; i-- {
			if err := put(i); err != nil {
				return err
			}
			if err := b.Ready(ctx, i); err != nil {
				return err
			}
		}
		return b.Wait(ctx)
	}
	all = []*contest.Way{
		{Name: "one", Do: func(ctx context.Context) error { return one.Run(ctx) }},
		{Name: "views", Do: func(ctx context.Context) error { return step(ctx, func(int) error { return nil }) }},
		{Name: "copies", Do: func(ctx context.Context) error {
			err := step(ctx, func(i int) error { return b.Put(i, own[i]) })
			for i := range own {
				if err == nil {
					copy(own[i], b.View(i))
				}
			}
			return err
		}},
		{Name: "singles", Do: func(ctx context.Context) error {
			for i := last; i >= 0; i-- {
				if err := singles[i].Run(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	return all, contest.Run(ctx, c, turns, all)
}

// resnet50 is the tensors of ResNet-50 but for the first 11 of its 161, elements of each.
func resnet50() (sizes []int) {
	layer := func(in, out, width int) { sizes = append(sizes, in*out*width*width, out, out) } // and two of its norm
	layer(3, 64, 7)
	in := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		mid := 64 << stage
		for b := range blocks {
			layer(in, mid, 1)
			layer(mid, mid, 3)
			layer(mid, 4*mid, 1)
			if b == 0 {
				layer(in, 4*mid, 1)
			}
			in = 4 * mid
		}
	}
	return append(sizes, 2048*1000, 1000)[11:]
}

// uniform is 150 tensors of 64 B to 9 MiB, log-uniform, as many bytes in all as those of resnet50.
func uniform() []int {
	draw := rand.New(rand.NewPCG(1, 1))
	sizes, sum, want := make([]int, 150), 0.0, 0.0
	weights := make([]float64, len(sizes))
	for i := range weights {
		weights[i] = 16 * math.Pow(9<<20/64, draw.Float64())
		sum += weights[i]
	}
	for _, n := range resnet50() {
		want += float64(n)
	}
	for i, w := range weights {
		sizes[i] = min(max(16, int(w*want/sum)), 9<<20/4)
	}
	return sizes
}
