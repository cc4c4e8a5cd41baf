// Command samplesort sorts records that are spread over the ranks: afterwards each rank has a
// sorted part, and none of its keys is below those of the ranks before it.
//
//	tierflow run -n 4 -- samplesort -records 1000000
//
// Each rank prints how many records it has then, and the place of its first one among all. Ranks
// check that the whole is sorted and that no record was lost.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// record is an element: any type without pointers is one.
type record struct {
	Key   uint64
	Rank  int32 // that made it
	Index int32 // among those that the rank made
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("samplesort: ", err)
	}
}

// run joins the job, sorts and prints this rank's line.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("samplesort", flag.ContinueOnError)
	n := f.Int("records", 100_000, "records of each rank, not negative")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *n < 0 {
		return fmt.Errorf("-records %d: allowed are 0 and more", *n)
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	mine := records(*n, comm.Rank())
	var sorted []record
	var first int
	var took time.Duration
	for range 2 { // the first one warms up
		if err := planner.Barrier(ctx, comm); err != nil {
			return err
		}
		begin := time.Now()
		if sorted, first, err = sortAll(ctx, comm, mine); err != nil {
			return err
		}
		if took, err = planner.AllreduceValue(ctx, comm, time.Since(begin), tasks.Max); err != nil {
			return err
		}
	}
	if err := check(ctx, comm, mine, sorted); err != nil {
		return err
	}
	all, err := planner.AllreduceValue(ctx, comm, digest(sorted), tasks.Sum)
	if err == nil && comm.Rank() == 0 {
		fmt.Fprintf(out, "records=%d ranks=%d sort_ms=%.3f digest=%016x\n", *n, comm.Size(), took.Seconds()*1e3, all)
	}
	fmt.Fprintf(out, "rank=%d records=%d first=%d\n", comm.Rank(), len(sorted), first)
	return err
}

// mix makes numbers that look random of those that follow each other.
func mix(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// records returns n random ones, those of mpi/samplesort.c.
func records(n, rank int) []record {
	all := make([]record, n)
	for i := range all {
		all[i] = record{mix(uint64(rank)<<32|uint64(i)) >> 24, int32(rank), int32(i)}
	}
	return all
}

// order is by key; records with equal keys are ordered too, so that all results are the same.
func order(a, b record) int {
	switch {
	case a.Key != b.Key:
		return cmp.Compare(a.Key, b.Key)
	case a.Rank != b.Rank:
		return cmp.Compare(a.Rank, b.Rank)
	}
	return cmp.Compare(a.Index, b.Index)
}

// sortAll returns this rank's part of the sorted records, and the place of its first one.
func sortAll(ctx context.Context, c *planner.Comm, mine []record) (sorted []record, first int, err error) {
	mine = slices.Clone(mine)
	slices.SortFunc(mine, order)
	splitters, err := split(ctx, c, mine)
	if err != nil {
		return nil, 0, err
	}
	blocks := make([][]record, c.Size()) // what is below the first splitter is for rank 0, and so on
	for i, s := range splitters {
		n, _ := slices.BinarySearchFunc(mine, s, order)
		blocks[i], mine = mine[:n], mine[n:]
	}
	blocks[len(splitters)] = mine
	parts, err := planner.AlltoallBlocks(ctx, c, blocks)
	if err != nil {
		return nil, 0, err
	}
	sorted = merge(parts)
	before := []int{0} // Exscan leaves it alone on rank 0
	sum, err := planner.PrepareExscan(ctx, c, []int{len(sorted)}, before, tasks.Sum)
	if err != nil {
		return nil, 0, err
	}
	return sorted, before[0], sum.Run(ctx)
}

// merge makes one of sorted parts, two and two.
func merge(parts [][]record) []record {
	for len(parts) > 1 {
		var next [][]record
		for ; len(parts) > 1; parts = parts[2:] {
			a, b, to := parts[0], parts[1], make([]record, 0, len(parts[0])+len(parts[1]))
			for len(a) > 0 && len(b) > 0 {
				if order(a[0], b[0]) <= 0 {
					to, a = append(to, a[0]), a[1:]
				} else {
					to, b = append(to, b[0]), b[1:]
				}
			}
			next = append(next, append(append(to, a...), b...))
		}
		parts = append(next, parts...)
	}
	return parts[0]
}

// samples is how many each rank gives.
const samples = 32

// split returns where the parts of the ranks begin, from that of rank 1 on. Sorted records of each
// rank are sampled at equal distances.
func split(ctx context.Context, c *planner.Comm, mine []record) ([]record, error) {
	var some []record
	for i := range min(samples, len(mine)) {
		some = append(some, mine[i*len(mine)/min(samples, len(mine))])
	}
	counts := make([]int, c.Size())
	if err := planner.Allgather(ctx, c, []int{len(some)}, counts); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	all := make([]record, total)
	if err := planner.Allgatherv(ctx, c, some, all, counts); err != nil || total == 0 {
		return nil, err
	}
	slices.SortFunc(all, order)
	splitters := make([]record, c.Size()-1)
	for i := range splitters {
		splitters[i] = all[(i+1)*total/c.Size()]
	}
	return splitters, nil
}
