// Command cg solves Poisson's equation on a square grid by conjugate gradients, rows of the grid
// shared out among the ranks. Each step exchanges two rows of halos and adds up two numbers of 8
// bytes: it is as fast as small messages are.
//
//	tierflow run -n 4 -- cg -side 512
//
// With -check each rank compares the residuals with a serial run's.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("cg: ", err)
	}
}

// run joins the job and prints rank 0's line.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("cg", flag.ContinueOnError)
	side := f.Int("side", 256, "points of a side, at least one for each rank")
	steps := f.Int("steps", 1000, "steps at most, at least 1")
	check := f.Bool("check", false, "compare with a serial run")
	if err := f.Parse(args); err != nil {
		return err
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	if *side < comm.Size() || *steps < 1 {
		return fmt.Errorf("-side %d -steps %d: allowed are %d or more points, and 1 or more steps", *side, *steps, comm.Size())
	}
	begin := time.Now()
	curve, err := solve(ctx, newShared(comm), *side, *steps)
	took := time.Since(begin)
	if err == nil && *check {
		err = compare(ctx, curve, *side, *steps)
	}
	if err == nil && comm.Rank() == 0 {
		n := len(curve)
		fmt.Fprintf(out, "side=%d ranks=%d steps=%d residual=%.3g step_us=%.1f\n", *side, comm.Size(), n, curve[n-1], took.Seconds()*1e6/float64(n))
	}
	return err
}

// ranks are those who share the rows.
type ranks interface {
	rank() (rank, of int)
	// halo prepares an exchange of the first and last rows of a part: x has a row more at both ends.
	halo(ctx context.Context, x []float64, side int) (func() error, error)
	// sum adds up a number of each.
	sum(ctx context.Context, v float64) (float64, error)
}

// shared is the ranks of a communicator.
type shared struct{ c *planner.Comm }

func newShared(c *planner.Comm) ranks { return shared{c} }

func (s shared) rank() (rank, of int) { return s.c.Rank(), s.c.Size() }

func (s shared) sum(ctx context.Context, v float64) (float64, error) {
	return planner.AllreduceValue(ctx, s.c, v, tasks.Sum)
}

func (s shared) halo(ctx context.Context, x []float64, side int) (func() error, error) {
	var peers []int
	var send, get [][]float64
	n := len(x)
	if r := s.c.Rank(); r > 0 {
		peers, send, get = append(peers, r-1), append(send, x[side:2*side]), append(get, x[:side])
	}
	if r := s.c.Rank(); r < s.c.Size()-1 {
		peers, send, get = append(peers, r+1), append(send, x[n-2*side:n-side]), append(get, x[n-side:])
	}
	exchange, err := planner.PrepareNeighbors(ctx, s.c, peers, send, get)
	return func() error { return exchange.Run(ctx) }, err
}

// alone is a serial run.
type alone struct{}

func (alone) rank() (rank, of int)                              { return 0, 1 }
func (alone) sum(_ context.Context, v float64) (float64, error) { return v, nil }
func (alone) halo(context.Context, []float64, int) (func() error, error) {
	return func() error { return nil }, nil
}

// enough is the residual, relative to the first one, that ends the steps.
const enough = 1e-10

// solve returns the residual after each step.
func solve(ctx context.Context, all ranks, side, steps int) (curve []float64, err error) {
	me, of := all.rank()
	first, end := side*me/of, side*(me+1)/of
	n := (end - first) * side
	x, r, ap := make([]float64, n), make([]float64, n), make([]float64, n)
	framed := make([]float64, n+2*side)
	p := framed[side : side+n]
	for i := range r { // a source that is no eigenvector
		row, col := first+i/side, i%side
		r[i] = math.Sin(float64(row*row%97)) + math.Cos(float64(col*7%31))
	}
	copy(p, r)
	exchange, err := all.halo(ctx, framed, side)
	if err != nil {
		return nil, err
	}
	rr, err := all.sum(ctx, dot(r, r))
	begin := rr
	for step := 0; step < steps && err == nil && rr > enough*enough*begin; step++ {
		if err := exchange(); err != nil {
			return nil, err
		}
		laplace(ap, framed, side)
		pap, err := all.sum(ctx, dot(p, ap))
		if err != nil {
			return nil, err
		}
		alpha := rr / pap
		for i := range x {
			x[i] += alpha * p[i]
			r[i] -= alpha * ap[i]
		}
		old := rr
		if rr, err = all.sum(ctx, dot(r, r)); err != nil {
			return nil, err
		}
		for i := range p {
			p[i] = r[i] + rr/old*p[i]
		}
		curve = append(curve, math.Sqrt(rr/begin))
	}
	return curve, err
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// laplace applies the 5-point stencil to rows with one more at both ends.
func laplace(to, x []float64, side int) {
	for i := range to {
		at := i + side
		sum := 4*x[at] - x[at-side] - x[at+side]
		if i%side > 0 {
			sum -= x[at-1]
		}
		if i%side < side-1 {
			sum -= x[at+1]
		}
		to[i] = sum
	}
}

// near is how far a residual may be from a serial run's, as a share: sums have another order.
const near = 1e-6

// compare is an error unless residuals fall as those of a serial run, in as many steps.
func compare(ctx context.Context, curve []float64, side, steps int) error {
	want, err := solve(ctx, alone{}, side, steps)
	if err != nil {
		return err
	}
	if d := len(curve) - len(want); d < -1 || d > 1 {
		return fmt.Errorf("%d steps; a serial run takes %d", len(curve), len(want))
	}
	for i := range min(len(curve), len(want)) {
		if math.Abs(curve[i]-want[i]) > near*max(want[i], enough) && want[i] > 1e-8 {
			return fmt.Errorf("the residual of step %d is %v; of a serial run %v", i, curve[i], want[i])
		}
	}
	return nil
}
