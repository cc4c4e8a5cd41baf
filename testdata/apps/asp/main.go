// Command asp finds all shortest paths of a graph (Floyd and Warshall), the rows of the
// distance matrix shared out among the ranks. The owner of row k broadcasts it in step k: one
// persistent Bcast for each root, used for all its rows.
//
//	tierflow run -n 8 -- asp -vertices 2048
//
// It prints how long the steps took and how much of that was communication, on the slowest
// rank. With -check rank 0 compares the result with a serial run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "asp:", err)
		os.Exit(1)
	}
}

// run joins the job and prints rank 0's line.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("asp", flag.ContinueOnError)
	n := f.Int("vertices", 512, "vertices of the graph, 1 to 32768")
	plan := f.String("plan", "", "plan of the bcasts")
	check := f.Bool("check", false, "compare with a serial run")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *n < 1 || *n > 32768 {
		return fmt.Errorf("-vertices %d: allowed are 1 to 32768", *n)
	}
	comm, err := planner.Join(ctx, &planner.Options{Plan: *plan})
	if err != nil {
		return err
	}
	defer comm.Close()
	took, err := shortest(ctx, comm, *n, *check)
	if err == nil && comm.Rank() == 0 {
		fmt.Fprintln(out, took)
	}
	return err
}

// times are those of a run, on the slowest rank.
type times struct {
	vertices, ranks int
	total, bcasts   time.Duration
}

// String is a line of key=value.
func (t times) String() string {
	return fmt.Sprintf("vertices=%d ranks=%d total_s=%.3f communication_s=%.3f share=%.1f%%",
		t.vertices, t.ranks, t.total.Seconds(), t.bcasts.Seconds(), 100*t.bcasts.Seconds()/t.total.Seconds())
}

// shortest finds all shortest paths among n vertices.
func shortest(ctx context.Context, c *planner.Comm, n int, check bool) (t times, err error) {
	p, me := c.Size(), c.Rank()
	row, err := planner.Alloc[int32](c, n)
	if err != nil {
		return t, err
	}
	bcasts := make([]*planner.Collective, p)
	for root := range bcasts {
		if bcasts[root], err = planner.PrepareBcast(ctx, c, row, root); err != nil {
			return t, err
		}
	}
	first, end := rows(n, p, me)
	mine := weights(n, first, end)
	if err := planner.Barrier(ctx, c); err != nil {
		return t, err
	}
	begin, spent := time.Now(), time.Duration(0)
	owner := 0
	for k := range n {
		for _, last := rows(n, p, owner); k >= last; _, last = rows(n, p, owner) {
			owner++
		}
		if owner == me {
			copy(row, mine[k-first])
		}
		before := time.Now()
		if err := bcasts[owner].Run(ctx); err != nil {
			return t, err
		}
		spent += time.Since(before)
		relax(mine, row, k)
	}
	slowest := []int64{int64(time.Since(begin)), int64(spent)}
	if err := planner.Allreduce(ctx, c, slowest, slowest, tasks.Max); err != nil {
		return t, err
	}
	t = times{n, p, time.Duration(slowest[0]), time.Duration(slowest[1])}
	if check {
		err = compare(mine, n, first)
	}
	return t, err
}

// rows are those of a rank: from first to before end.
func rows(n, ranks, rank int) (first, end int) { return n * rank / ranks, n * (rank + 1) / ranks }

// unreached is no path.
const unreached = 1 << 29

// weights returns rows of a graph, the same on all ranks: about a quarter of all edges.
func weights(n, first, end int) [][]int32 {
	all := make([][]int32, end-first)
	for i := range all {
		all[i] = make([]int32, n)
		for j := range all[i] {
			x := uint32(first+i)*2654435761 ^ uint32(j)*40503
			x ^= x >> 13
			x *= 0x5bd1e995
			switch x ^= x >> 15; {
			case first+i == j:
			case x%4 == 0:
				all[i][j] = int32(1 + x/4%1000)
			default:
				all[i][j] = unreached
			}
		}
	}
	return all
}

// relax lets paths go by vertex k; its row is given.
func relax(mine [][]int32, row []int32, k int) {
	for _, r := range mine {
		by := r[k]
		if by >= unreached {
			continue
		}
		for j, d := range row {
			if by+d < r[j] {
				r[j] = by + d
			}
		}
	}
}

// compare reports the first row that differs from a serial run's.
func compare(mine [][]int32, n, first int) error {
	all := weights(n, 0, n)
	for k := range n {
		relax(all, slices.Clone(all[k]), k)
	}
	for i := range mine {
		if !slices.Equal(mine[i], all[first+i]) {
			return fmt.Errorf("row %d differs from a serial run's", first+i)
		}
	}
	return nil
}
