// Command shards compares the costs of keeping a model in parts: the messages of a training step, and
// the memory of a rank. Nothing is computed.
//
//	tierflow run -n 4 -- shards -turns 9             times of ddp, zero1, zero2 and zero3 in turns
//	tierflow run -n 4 -- shards -turns 3 -mode zero3 its peak memory, too, beside the table's
//
// The table is that of float32 weights with Adam, bytes of P ranks for each weight:
//
//	ddp    16
//	zero1  8 + 12/P            moments in parts, and reductions
//	zero2  4 + 12/P            gradients, too, are whole in two units at a time
//	zero3  16/P                weights, too
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/fuse"
	"github.com/tierflow/tierflow/planner/shard"
	"github.com/tierflow/tierflow/testdata/apps/contest"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("shards: ", err)
	}
}

// modes are all of them. Others are compared with the first one.
var modes = []string{"ddp", "zero1", "zero2", "zero3"}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("shards", flag.ContinueOnError)
	units := f.Int("units", 48, "units of the model, at least 2")
	size := f.Int("elements", 1<<19, "weights of a unit, at least 1")
	turns := f.Int("turns", 9, "turns, at least 1")
	mode := f.String("mode", "", "ddp, zero1, zero2 or zero3 by itself, and its memory; empty: all in turns")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *units < 2 || *size < 1 || *turns < 1 || *mode != "" && !slices.Contains(modes, *mode) {
		return fmt.Errorf("-units %d -elements %d -turns %d -mode %s: allowed are 2 or more, 1 or more, 1 or more, and %v", *units, *size, *turns, *mode, modes)
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	sizes := slices.Repeat([]int{*size}, *units)
	if *mode != "" {
		return measure(ctx, comm, *mode, sizes, *turns, out)
	}
	all, err := compare(ctx, comm, sizes, *turns)
	for k := 0; k < len(all) && comm.Rank() == 0; k++ {
		fmt.Fprintf(out, "mode=%s %s\n", all[k].Name, all[k].Against(&all[0].Way))
	}
	return err
}

// way is a mode with its memory, and its steps.
type way struct {
	contest.Way
	free func()
	kept []float32 // what else is in memory: moments, and weights of ddp
	parts
}

// newWay makes a mode, with moments that are written.
func newWay(c *planner.Comm, name string, sizes []int) (w *way, err error) {
	w = &way{Way: contest.Way{Name: name}}
	if name == "ddp" {
		err = w.replicate(c, sizes)
	} else {
		err = w.split(c, sizes)
	}
	return w, err
}

// replicate keeps all on each rank, and sums gradients in buckets.
func (w *way) replicate(c *planner.Comm, sizes []int) error {
	grads, err := fuse.New[float32](c, sizes, nil)
	if err != nil {
		return err
	}
	n := 0
	for _, size := range sizes {
		n += size
	}
	w.kept = ones(3 * n)
	w.free = grads.Free
	w.Do = func(ctx context.Context) error {
		for u := len(sizes) - 1; u >= 0; u-- {
			if err := grads.Ready(ctx, u); err != nil {
				return err
			}
		}
		return grads.Wait(ctx)
	}
	return nil
}

// split keeps parts. Gradients of zero1 are all there, others have two buffers.
func (w *way) split(c *planner.Comm, sizes []int) error {
	o := &shard.Options{}
	if w.Name == "zero3" {
		o.Buffers = 2
	}
	params, err := shard.New[float32](c, sizes, o)
	if err != nil {
		return err
	}
	grads, moments, buffers := make([][]float32, len(sizes)), 0, [2][]float32{}
	for u := range sizes {
		n := params.Padded(u)
		if w.Name == "zero1" || len(buffers[u%2]) < n {
			buffers[u%2] = ones(n)
		}
		grads[u] = buffers[u%2][:n]
		copy(params.Own(u), grads[u])
		moments += 2 * len(params.Own(u))
	}
	w.kept, w.parts, w.free = ones(moments), parts{params, grads}, params.Close
	if w.Do = w.zero2; w.Name == "zero3" {
		w.Do = w.zero3
	}
	return nil
}

// ones is memory that has been written.
func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

// compare takes steps of all modes in turns.
func compare(ctx context.Context, c *planner.Comm, sizes []int, turns int) (all []*way, err error) {
	var ways []*contest.Way
	for _, name := range modes {
		w, err := newWay(c, name, sizes)
		if err != nil {
			return nil, err
		}
		defer w.free()
		all, ways = append(all, w), append(ways, &w.Way)
	}
	return all, contest.Run(ctx, c, turns, ways)
}
