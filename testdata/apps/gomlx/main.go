// Command gomlx trains a model of GoMLX on all ranks: its pure-Go backend computes gradients, and
// planner/fuse averages them. It is a module of its own, so that GoMLX is none of tierflow's.
//
//	cd testdata/apps/gomlx && GOWORK=off go build && tierflow run -n 4 -- ./gomlx
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/fuse"
)

const (
	inputs = 4
	points = 64 // of each rank
	steps  = 400
	rate   = 0.1
)

// truth is what training has to find: the factor of each input, and a constant.
var truth = []float32{1, -2, 0.5, 3, 0.25}

func main() {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		log.Fatal("gomlx: ", err)
	}
	defer comm.Close()
	found, err := train(ctx, comm)
	if err == nil {
		err = compare(found)
	}
	if err != nil {
		log.Fatal("gomlx: ", err)
	}
	if comm.Rank() == 0 {
		fmt.Printf("found=%.3f\n", found)
	}
}

// loss returns the gradients of the mean squared error, of factors and of the constant.
func loss(w, b, x, y *graph.Node) (*graph.Node, *graph.Node) {
	guess := graph.Add(graph.MatMul(x, w), b)
	slopes := graph.Gradient(graph.ReduceAllMean(graph.Square(graph.Sub(guess, y))), w, b)
	return slopes[0], slopes[1]
}

// train returns the factors and the constant that all ranks find, each with points of its own.
func train(ctx context.Context, c *planner.Comm) ([]float32, error) {
	backend, err := backends.NewWithConfig(simplego.BackendName)
	if err != nil {
		return nil, err
	}
	gradients, err := graph.NewExec(backend, loss)
	if err != nil {
		return nil, err
	}
	buckets, err := fuse.New[float32](c, []int{inputs, 1}, nil)
	if err != nil {
		return nil, err
	}
	defer buckets.Free()
	x, y := draw(c.Rank())
	params := [][]float32{make([]float32, inputs), make([]float32, 1)}
	for range steps {
		slopes, err := gradients.Exec(
			tensors.FromFlatDataAndDimensions(params[0], inputs, 1), tensors.FromFlatDataAndDimensions(params[1], 1, 1),
			tensors.FromFlatDataAndDimensions(x, points, inputs), tensors.FromFlatDataAndDimensions(y, points, 1))
		if err != nil {
			return nil, err
		}
		for i := len(params) - 1; i >= 0; i-- {
			mine, err := tensors.CopyFlatData[float32](slopes[i])
			if err != nil {
				return nil, err
			}
			if err := buckets.Put(i, mine); err != nil {
				return nil, err
			}
			if err := buckets.Ready(ctx, i); err != nil {
				return nil, err
			}
		}
		if err := buckets.Wait(ctx); err != nil {
			return nil, err
		}
		for i, p := range params {
			for k, g := range buckets.View(i) {
				p[k] -= rate * g
			}
		}
	}
	return append(params[0], params[1]...), nil
}

// draw draws a rank's points, and what the model should say of them.
func draw(rank int) (x, y []float32) {
	r := rand.New(rand.NewPCG(1, uint64(rank)))
	for range points {
		sum := truth[inputs]
		for k := range inputs {
			v := float32(r.NormFloat64())
			x, sum = append(x, v), sum+v*truth[k]
		}
		y = append(y, sum)
	}
	return x, y
}

// compare is an error unless the truth was found.
func compare(found []float32) error {
	for k, want := range truth {
		if math.Abs(float64(found[k]-want)) > 1e-3 {
			return fmt.Errorf("found %v, want %v", found, truth)
		}
	}
	return nil
}
