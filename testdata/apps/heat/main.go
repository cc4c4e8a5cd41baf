// Command heat computes how heat spreads over a square plate (Jacobi's iteration), cut into blocks.
// While halos are on their way to the neighbours, each rank computes what lies inside its block.
//
//	tierflow run -n 4 -- heat -side 2048 -steps 200
//
// Each cell's sum has one order, so the result has the same bits as a serial run's; -check compares.
// -turns takes the steps by Neighbors and by single sends and receives in turns.
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
		log.Fatal("heat: ", err)
	}
}

// run joins the job and prints rank 0's line.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("heat", flag.ContinueOnError)
	side := f.Int("side", 512, "cells of a side, at least one for each rank")
	steps := f.Int("steps", 100, "steps, at least 1")
	check := f.Bool("check", false, "compare with a serial run")
	turns := f.Int("turns", 0, "instead, compare halos by Neighbors with single sends and receives, in so many turns")
	if err := f.Parse(args); err != nil {
		return err
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	if *side < comm.Size() || *steps < 1 || *turns < 0 {
		return fmt.Errorf("-side %d -steps %d -turns %d: allowed are %d or more cells, 1 or more steps, and 0 or more turns", *side, *steps, *turns, comm.Size())
	}
	if *turns > 0 {
		return inTurns(ctx, comm, *side, *steps, *turns, out)
	}
	p, change, err := spread(ctx, comm, *side, *steps, byNeighbors)
	if err == nil && *check {
		err = p.compare(*steps)
	}
	if err == nil && comm.Rank() == 0 {
		fmt.Fprintf(out, "side=%d ranks=%d steps=%d change=%.3g step_ms=%.3f\n", *side, comm.Size(), *steps, change, p.took.Seconds()*1e3/float64(*steps))
	}
	return err
}

// plate is a rank's block of the plate, with a frame of its neighbours' cells or of the edge.
type plate struct {
	side          int // of the whole plate
	top, left     int // its first cell
	height, width int
	now, next     []float64 // rows of width+2
	took          time.Duration
}

// newPlate is block (row, col) of rows by cols blocks. The plate is cold, its upper edge is hot.
func newPlate(side, rows, cols, row, col int) *plate {
	p := &plate{side: side, top: side * row / rows, left: side * col / cols}
	p.height, p.width = side*(row+1)/rows-p.top, side*(col+1)/cols-p.left
	p.now, p.next = make([]float64, (p.height+2)*(p.width+2)), make([]float64, (p.height+2)*(p.width+2))
	for k := range p.width + 2 {
		if row == 0 {
			p.now[k], p.next[k] = 1, 1
		}
	}
	return p
}

// step computes rows and columns of the block, counted from 1 and up to before the end, and
// returns the largest change.
func (p *plate) step(top, bottom, left, right int) (change float64) {
	w := p.width + 2
	for i := top; i < bottom; i++ {
		n := max(0, right-left)
		at := func(row, k int) []float64 { return p.now[row*w+k:][:n] } // the compiler knows that all are as long
		above, before, row, after, below := at(i-1, left), at(i, left-1), at(i, left), at(i, left+1), at(i+1, left)
		for k, was := range row {
			is := 0.25 * ((above[k] + below[k]) + (before[k] + after[k]))
			p.next[i*w+left+k] = is
			if d := math.Abs(is - was); d > change {
				change = d
			}
		}
	}
	return change
}

// line is the cells of a side of the block: of its outermost ones, or of the frame.
func (p *plate) line(side int, frame bool) (first, stride, n int) {
	w, out := p.width+2, 0
	if frame {
		out = 1
	}
	switch side {
	case 0: // above
		return (1-out)*w + 1, 1, p.width
	case 1: // below
		return (p.height+out)*w + 1, 1, p.width
	case 2: // left
		return w + 1 - out, w, p.height
	default:
		return w + p.width + out, w, p.height
	}
}

// spread takes steps, and returns this rank's block and the last change that all ranks looked at.
func spread(ctx context.Context, c *planner.Comm, side, steps int, by func(context.Context, *planner.Comm, *halo) (exchange, error)) (p *plate, change float64, err error) {
	rows := int(math.Sqrt(float64(c.Size())))
	for c.Size()%rows != 0 {
		rows--
	}
	cols := c.Size() / rows
	p = newPlate(side, rows, cols, c.Rank()/cols, c.Rank()%cols)
	h := newHalo(c.Rank(), p, rows, cols)
	start, err := by(ctx, c, &h)
	if err == nil {
		err = planner.Barrier(ctx, c)
	}
	if err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	for step := range steps {
		for k, side := range h.sides {
			first, stride, _ := p.line(side, false)
			for i := range h.send[k] {
				h.send[k][i] = p.now[first+i*stride]
			}
		}
		wait, err := start(ctx)
		if err != nil {
			return nil, 0, err
		}
		mine := p.step(2, p.height, 2, p.width) // the interior, while halos fly
		if err := wait(ctx); err != nil {
			return nil, 0, err
		}
		for k, side := range h.sides {
			first, stride, _ := p.line(side, true)
			for i, v := range h.get[k] {
				p.now[first+i*stride] = v
			}
		}
		mine = max(mine, p.step(1, 2, 1, p.width+1), p.step(max(2, p.height), p.height+1, 1, p.width+1),
			p.step(2, p.height, 1, 2), p.step(2, p.height, max(2, p.width), p.width+1))
		p.now, p.next = p.next, p.now
		if step%10 == 9 || step == steps-1 {
			if change, err = planner.AllreduceValue(ctx, c, mine, tasks.Max); err != nil {
				return nil, 0, err
			}
		}
	}
	p.took = time.Since(begin)
	return p, change, nil
}

// compare is an error unless the block has the bits of a serial run.
func (p *plate) compare(steps int) error {
	all := newPlate(p.side, 1, 1, 0, 0)
	for range steps {
		all.step(1, p.side+1, 1, p.side+1)
		all.now, all.next = all.next, all.now
	}
	for i := 1; i <= p.height; i++ {
		for k := 1; k <= p.width; k++ {
			if got, want := p.now[i*(p.width+2)+k], all.now[(p.top+i)*(p.side+2)+p.left+k]; got != want {
				return fmt.Errorf("cell %d, %d is %v; of a serial run %v", p.top+i-1, p.left+k-1, got, want)
			}
		}
	}
	return nil
}
