// Command sgd trains a small network on all ranks: each computes the gradients on its share of
// the examples, and all take their mean. The gradients of a layer are a bucket: while they are on
// their way, those of the layers before it are computed.
//
//	tierflow run -n 4 -- sgd -steps 400
//
// Rank 0 prints the loss over the examples of all ranks. All ranks keep the same weights.
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
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("sgd: ", err)
	}
}

// run joins the job and trains.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("sgd", flag.ContinueOnError)
	steps := f.Int("steps", 400, "steps of the descent, at least 1")
	examples := f.Int("examples", 480, "examples of all ranks together, a multiple of the ranks")
	if err := f.Parse(args); err != nil {
		return err
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	if *steps < 1 || *examples < comm.Size() || *examples%comm.Size() != 0 {
		return fmt.Errorf("-steps %d, -examples %d: allowed are 1 or more, and a multiple of the %d ranks", *steps, *examples, comm.Size())
	}
	_, err = train(ctx, comm, *steps, *examples, func(step int, loss float64) {
		if comm.Rank() == 0 && (step%100 == 0 || step == *steps-1) {
			fmt.Fprintf(out, "step=%d loss=%.5f\n", step, loss)
		}
	})
	return err
}

// rate is how far a step goes along the gradient.
const rate = 0.3

// train returns the weights after some steps, and reports the loss before each.
func train(ctx context.Context, c *planner.Comm, steps, examples int, report func(step int, loss float64)) ([]float64, error) {
	net, err := newNetwork(ctx, c, 2, 16, 16, 1)
	if err != nil {
		return nil, err
	}
	x, y := share(examples, c.Rank(), c.Size())
	for step := range steps {
		out := x
		for _, l := range net {
			out = l.forward(out)
		}
		mine, slope := compare(out, y)
		for i := len(net) - 1; i >= 0; i-- { // from the last layer to the first
			slope = net[i].backward(slope)
			if net[i].pending, err = net[i].mean.Start(ctx); err != nil {
				return nil, err
			}
		}
		for i := len(net) - 1; i >= 0; i-- {
			if err := net[i].pending.Wait(ctx); err != nil {
				return nil, err
			}
			net[i].descend()
		}
		loss, err := planner.AllreduceValue(ctx, c, mine, tasks.Avg)
		if err != nil {
			return nil, err
		}
		report(step, loss)
	}
	var weights []float64
	for _, l := range net {
		weights = append(weights, l.weight...)
	}
	return weights, nil
}

// layer computes tanh(weights · inputs + bias).
type layer struct {
	in, out int
	weight  []float64 // for each output a row: a weight for each input, and the bias
	grad    []float64 // of the loss by weight
	x, y    []float64 // what went in and came out, a row for each example

	mean    *planner.Collective // takes the mean of grad over all ranks, in place
	pending *planner.Pending    // of this step's mean
}

// newNetwork returns layers between so many values, with the same weights on all ranks.
func newNetwork(ctx context.Context, c *planner.Comm, widths ...int) (net []*layer, err error) {
	draw := rand.New(rand.NewPCG(1, 2))
	for i, in := range widths[:len(widths)-1] {
		l := &layer{in: in, out: widths[i+1]}
		l.weight = make([]float64, l.out*(in+1))
		for k := range l.weight {
			l.weight[k] = draw.NormFloat64() / math.Sqrt(float64(in))
		}
		l.grad = make([]float64, len(l.weight))
		if l.mean, err = planner.PrepareAllreduce(ctx, c, l.grad, l.grad, tasks.Avg); err != nil {
			return nil, err
		}
		net = append(net, l)
	}
	return net, nil
}

// forward computes the outputs of all examples.
func (l *layer) forward(x []float64) []float64 {
	l.x, l.y = x, make([]float64, len(x)/l.in*l.out)
	for i := range l.y {
		in, row := x[i/l.out*l.in:][:l.in], l.weight[i%l.out*(l.in+1):][:l.in+1]
		sum := row[l.in]
		for k, v := range in {
			sum += v * row[k]
		}
		l.y[i] = math.Tanh(sum)
	}
	return l.y
}

// backward takes the slope of the loss by the outputs, computes the gradients, and returns the
// slope by the inputs.
func (l *layer) backward(slope []float64) []float64 {
	clear(l.grad)
	before := make([]float64, len(l.x))
	for i, s := range slope {
		s *= 1 - l.y[i]*l.y[i]
		in, row := i/l.out*l.in, i%l.out*(l.in+1)
		for k := range l.in {
			l.grad[row+k] += s * l.x[in+k]
			before[in+k] += s * l.weight[row+k]
		}
		l.grad[row+l.in] += s
	}
	return before
}

// descend takes a step down.
func (l *layer) descend() {
	for i, g := range l.grad {
		l.weight[i] -= rate * g
	}
}

// compare returns the mean square of what outputs miss, and its slope by each of them.
func compare(out, want []float64) (loss float64, slope []float64) {
	slope = make([]float64, len(out))
	for i := range out {
		d := out[i] - want[i]
		loss += d * d / float64(len(out))
		slope[i] = 2 * d / float64(len(out))
	}
	return loss, slope
}

// share returns a rank's part of the examples: points of a square, and whether a circle has them.
func share(examples, rank, ranks int) (x, y []float64) {
	draw := rand.New(rand.NewPCG(3, 4)) // the same on all ranks
	for i := range examples {
		a, b := 2*draw.Float64()-1, 2*draw.Float64()-1
		if i*ranks/examples == rank {
			x, y = append(x, a, b), append(y, math.Copysign(0.8, 0.5-a*a-b*b))
		}
	}
	return x, y
}
