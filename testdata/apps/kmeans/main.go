// Command kmeans finds the centres of clusters of points (Lloyd's algorithm), points shared out
// among the ranks in chunks. Each step adds up, for every cluster, its points' coordinates and
// their number.
//
//	tierflow run -n 6 -- kmeans -points 1200000 -sum exact
//
// With -sum exact each chunk is a contribution of an exact sum: the centres have the same bits for
// any number of ranks, and the digest shows it. With -check they are compared with a serial run's.
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
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/exact"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("kmeans: ", err)
	}
}

// run joins the job and prints rank 0's line.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("kmeans", flag.ContinueOnError)
	s := settings{}
	f.IntVar(&s.points, "points", 240000, "points, at least 24")
	f.IntVar(&s.clusters, "clusters", 16, "clusters, at least 1")
	f.IntVar(&s.steps, "steps", 20, "steps, at least 1")
	sum := f.String("sum", "free", "free or exact")
	check := f.Bool("check", false, "compare with a serial run")
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.exact = *sum == "exact"; s.points < chunks || s.clusters < 1 || s.steps < 1 || !s.exact && *sum != "free" {
		return fmt.Errorf("-points %d -clusters %d -steps %d -sum %s: allowed are %d points or more, 1 or more, free and exact", s.points, s.clusters, s.steps, *sum, chunks)
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	found, err := cluster(ctx, comm, s)
	if err == nil && *check {
		err = compare(ctx, found, s)
	}
	if err == nil && comm.Rank() == 0 {
		fmt.Fprintf(out, "points=%d ranks=%d steps=%d inertia=%.12g step_ms=%.3f digest %s\n", s.points, comm.Size(), s.steps, found.inertia, found.took.Seconds()*1e3/float64(s.steps), found.digest())
	}
	return err
}

// settings are the values of the flags.
type settings struct {
	points, clusters, steps int
	exact                   bool
}

// result is the same on all ranks.
type result struct {
	centres []float64 // dims of each
	inertia float64   // mean square of the distances of points from their centres
	took    time.Duration
}

// digest tells results apart, bit by bit.
func (r *result) digest() string {
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, append(slices.Clone(r.centres), r.inertia)) // a hash takes all
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// cluster takes steps from the first points.
func cluster(ctx context.Context, c *planner.Comm, s settings) (r result, err error) {
	var mine [][]float64
	for number := c.Rank(); number < chunks; number += c.Size() {
		mine = append(mine, s.chunk(number))
	}
	r.centres = make([]float64, s.clusters*dims)
	first := s.chunk(0)
	for i := range r.centres {
		r.centres[i] = first[i%len(first)] + float64(i/len(first))
	}
	each := make([][]float64, len(mine)) // sums of each chunk: by cluster its coordinates and number, then the squares
	for i := range each {
		each[i] = make([]float64, s.clusters*(dims+1)+1)
	}
	total := make([]float64, s.clusters*(dims+1)+1)
	add, err := s.adder(ctx, c, len(total))
	if err != nil {
		return r, err
	}
	if err := planner.Barrier(ctx, c); err != nil {
		return r, err
	}
	begin := time.Now()
	for range s.steps {
		for i, points := range mine {
			assign(each[i], points, r.centres)
		}
		if err := add(ctx, each, total); err != nil {
			return r, err
		}
		for k := range s.clusters {
			part := total[k*(dims+1):][:dims+1]
			for d := range dims {
				if part[dims] > 0 {
					r.centres[k*dims+d] = part[d] / part[dims]
				}
			}
		}
		r.inertia = total[len(total)-1] / float64(s.points)
	}
	r.took = time.Since(begin)
	return r, nil
}

// adder returns what adds up chunks of all ranks.
func (s *settings) adder(ctx context.Context, c *planner.Comm, n int) (func(ctx context.Context, each [][]float64, total []float64) error, error) {
	if !s.exact {
		return func(ctx context.Context, each [][]float64, total []float64) error {
			clear(total)
			for _, x := range each {
				for i, v := range x {
					total[i] += v
				}
			}
			return planner.Allreduce(ctx, c, total, total, tasks.Sum)
		}, nil
	}
	sum, err := exact.New[float64](ctx, c, n, chunks, nil)
	if err != nil {
		return nil, err
	}
	return sum.Run, nil
}

// assign adds up points by their nearest centres.
func assign(sums, points, centres []float64) {
	clear(sums)
	for ; len(points) >= dims; points = points[dims:] {
		p := (*[dims]float64)(points)
		nearest, least := 0, math.Inf(1)
		for k, rest := 0, centres; len(rest) >= dims; k, rest = k+1, rest[dims:] {
			c := (*[dims]float64)(rest)
			x, y, z, w := p[0]-c[0], p[1]-c[1], p[2]-c[2], p[3]-c[3]
			if away := x*x + y*y + z*z + w*w; away < least {
				nearest, least = k, away
			}
		}
		to := sums[nearest*(dims+1):][:dims+1]
		for d, v := range p {
			to[d] += v
		}
		to[dims]++
		sums[len(sums)-1] += least
	}
}

// compare is an error unless a serial run finds the same: bit by bit in exact sums, else nearly.
func compare(ctx context.Context, got result, s settings) error {
	return planner.Run(ctx, "1x1", nil, func(ctx context.Context, c *planner.Comm) error {
		want, err := cluster(ctx, c, s)
		if err != nil {
			return err
		}
		if s.exact && got.digest() != want.digest() || math.Abs(got.inertia-want.inertia) > 1e-9*want.inertia {
			return fmt.Errorf("inertia %v, digest %s; of a serial run %v, %s", got.inertia, got.digest(), want.inertia, want.digest())
		}
		return nil
	})
}
