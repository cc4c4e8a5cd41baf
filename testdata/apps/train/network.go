package main

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// The units of weights, in the order in which they are used.
const (
	embed  = iota // a row for each byte
	hidden        // a row for each value of the hidden layer, and their biases behind
	output        // a row for each byte, and their biases behind
	units
)

const (
	symbols = 256
	width   = 32             // of an embedding
	inputs  = before * width // of the hidden layer
)

// network guesses the next byte: softmax(output · tanh(hidden · embedded bytes)).
type network struct {
	width   int // of the hidden layer
	weights [units][]float32
	// of the last batch, a row for each example
	x, h, p, dh, dx blas32.General
	did             []work // since the beginning of the step
}

// work is a computation for a unit, and its time.
type work struct {
	kind, unit int
	begin, end time.Time
}

// Kinds of work.
const (
	forward  = iota
	gradient // of a unit's weights
	slopes   // for the unit before
	descent  // of the weights
	kinds
)

// note adds work ending now.
func (n *network) note(kind, unit int, begin time.Time) {
	n.did = append(n.did, work{kind, unit, begin, time.Now()})
}

// sizes are the numbers of weights by unit.
func (n *network) sizes() []int {
	return []int{symbols * width, n.width*inputs + n.width, symbols*n.width + symbols}
}

// newNetwork has the same weights on all ranks. It takes batches of so many examples.
func newNetwork(hiddenWidth int, seed uint64, batchSize int) *network {
	n, draw := &network{width: hiddenWidth}, rand.New(rand.NewPCG(seed, 0))
	n.x, n.dx = rows(batchSize, inputs, nil), rows(batchSize, inputs, nil)
	n.h, n.dh = rows(batchSize, n.width, nil), rows(batchSize, n.width, nil)
	n.p = rows(batchSize, symbols, nil)
	for u, size := range n.sizes() {
		scale := []float64{0.5, 1 / math.Sqrt(inputs), 0.5 / math.Sqrt(float64(n.width))}[u]
		n.weights[u] = make([]float32, size)
		for i := range n.weights[u] {
			n.weights[u][i] = float32(draw.NormFloat64() * scale)
		}
	}
	return n
}

// rows looks at data as a matrix; nil: makes some.
func rows(n, cols int, data []float32) blas32.General {
	if data == nil {
		data = make([]float32, n*cols)
	}
	return blas32.General{Rows: n, Cols: cols, Stride: cols, Data: data[:n*cols]}
}

// layer is a unit's matrix and biases.
func layer(data []float32, n, cols int) (m blas32.General, bias []float32) {
	return rows(n, cols, data), data[n*cols:]
}

// keeper keeps weights and gradients, in whole or in parts by rank.
type keeper interface {
	// weights are those of a unit, until the next call of done.
	weights(ctx context.Context, u int) ([]float32, error)
	// done lets the weights of a unit go.
	done(u int)
	// grad returns the place for the gradient of one of this rank's micro-batches, and whether
	// it is added to the one there or replaces it.
	grad(micro, u int) (to []float32, adds bool)
	// ready says: the gradient of a unit is written, of all of this rank's micro-batches.
	ready(ctx context.Context, u int) error
	// update sums gradients and takes a step down. This rank had so many micro-batches.
	update(ctx context.Context, step, micros int) error
	free()
}

// learn computes the loss of a micro-batch, bits a byte, and gradients of the mean over the batch.
// Without a batch it only takes part in collectives.
func (n *network) learn(ctx context.Context, k keeper, b *batch, micro int, last bool) (loss float64, err error) {
	if micro == 0 {
		n.did = n.did[:0]
	}
	for u := range units {
		if n.weights[u], err = k.weights(ctx, u); err != nil {
			return 0, err
		}
		begin := time.Now()
		if b != nil {
			n.forward(u, b)
		}
		if u < output {
			k.done(u)
		} else if b != nil {
			loss = n.compare(b)
		}
		n.note(forward, u, begin)
	}
	for u := units - 1; u >= 0; u-- {
		if u > embed { // whose weights slopes don't need
			if n.weights[u], err = k.weights(ctx, u); err != nil {
				return 0, err
			}
		}
		begin := time.Now()
		grad, adds := k.grad(micro, u)
		if !adds {
			clear(grad)
		}
		if b != nil {
			n.gradient(u, b, grad)
		}
		n.note(gradient, u, begin)
		if last { // sums are on their way while slopes are computed
			if err := k.ready(ctx, u); err != nil {
				return 0, err
			}
		}
		begin = time.Now()
		if b != nil {
			n.slopes(u)
		}
		n.note(slopes, u, begin)
		k.done(u)
	}
	return loss, nil
}

// loss returns the loss of a batch, without gradients.
func (n *network) loss(b *batch) float64 {
	for u := range units {
		n.forward(u, b)
	}
	return n.compare(b)
}

// forward computes the outputs of a unit.
func (n *network) forward(u int, b *batch) {
	switch u {
	case embed:
		for i, context := range b.contexts {
			for k, symbol := range context {
				copy(n.x.Data[i*inputs+k*width:][:width], n.weights[embed][int(symbol)*width:])
			}
		}
	case hidden:
		w, bias := layer(n.weights[hidden], n.width, inputs)
		affine(n.h, n.x, w, bias)
		for i, v := range n.h.Data {
			n.h.Data[i] = float32(math.Tanh(float64(v)))
		}
	case output:
		w, bias := layer(n.weights[output], symbols, n.width)
		affine(n.p, n.h, w, bias)
	}
}

// affine is y = x · wᵀ + bias in each row.
func affine(y, x, w blas32.General, bias []float32) {
	for i := range y.Rows {
		copy(y.Data[i*y.Stride:][:y.Cols], bias)
	}
	multiply(blas.NoTrans, blas.Trans, x, w, 1, y)
}

// compare turns outputs into their slopes of the mean loss, and returns that in bits.
func (n *network) compare(b *batch) (bits float64) {
	size := float64(len(b.next))
	for i, next := range b.next {
		row, top, sum := n.p.Data[i*symbols:][:symbols], math.Inf(-1), 0.0
		for _, v := range row {
			top = max(top, float64(v))
		}
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		bits -= (float64(row[next]) - top - math.Log(sum)) / math.Ln2 / size
		for k, v := range row {
			row[k] = float32(math.Exp(float64(v)-top) / sum / size)
		}
		row[next] -= float32(1 / size)
	}
	return bits
}

// gradient adds a unit's gradient.
func (n *network) gradient(u int, b *batch, grad []float32) {
	switch u {
	case output:
		accumulate(n.p, n.h, grad)
	case hidden:
		accumulate(n.dh, n.x, grad)
	case embed:
		for i, context := range b.contexts {
			for k, symbol := range context {
				row := grad[int(symbol)*width:][:width]
				for j, d := range n.dx.Data[i*inputs+k*width:][:width] {
					row[j] += d
				}
			}
		}
	}
}

// slopes computes the slopes of a unit's inputs from the unit before.
func (n *network) slopes(u int) {
	switch u {
	case output:
		w, _ := layer(n.weights[output], symbols, n.width)
		multiply(blas.NoTrans, blas.NoTrans, n.p, w, 0, n.dh)
		for i, h := range n.h.Data {
			n.dh.Data[i] *= 1 - h*h
		}
	case hidden:
		w, _ := layer(n.weights[hidden], n.width, inputs)
		multiply(blas.NoTrans, blas.NoTrans, n.dh, w, 0, n.dx)
	}
}

// accumulate adds the gradient of y = x · wᵀ + bias.
func accumulate(dy, x blas32.General, grad []float32) {
	m, bias := layer(grad, dy.Cols, x.Cols)
	multiply(blas.Trans, blas.NoTrans, dy, x, 1, m)
	for i := range dy.Rows {
		for k, d := range dy.Data[i*dy.Stride:][:dy.Cols] {
			bias[k] += d
		}
	}
}

// piece is how many rows and columns of a product are computed at a time. gonum would compute more
// than three of them on all Go processors.
const piece = 64

// multiply is c = a·b + beta·c, of transposed a and b where it is said, on all Go processors but one:
// sums go on there. Each element has the same bits for any number of processors.
func multiply(ta, tb blas.Transpose, a, b blas32.General, beta float32, c blas32.General) {
	cols := (c.Cols + piece - 1) / piece
	pieces := int64((c.Rows+piece-1)/piece) * int64(cols)
	var next atomic.Int64
	work := func() {
		for k := next.Add(1) - 1; k < pieces; k = next.Add(1) - 1 {
			i, j := int(k)/cols*piece, int(k)%cols*piece
			x, y := across(a, i, ta == blas.Trans), across(b, j, tb == blas.NoTrans)
			blas32.Gemm(ta, tb, 1, x, y, beta, part(c, i, j, piece, piece))
		}
	}
	var others sync.WaitGroup
	for range runtime.GOMAXPROCS(0) - 2 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// across is a piece of rows of a matrix, or of columns, from some on.
func across(m blas32.General, from int, columns bool) blas32.General {
	if columns {
		return part(m, 0, from, m.Rows, piece)
	}
	return part(m, from, 0, piece, m.Cols)
}

// part is rows and columns of a matrix, from some on and at most so many.
func part(m blas32.General, row, col, rows, cols int) blas32.General {
	return blas32.General{Rows: min(rows, m.Rows-row), Cols: min(cols, m.Cols-col), Stride: m.Stride, Data: m.Data[row*m.Stride+col:]}
}
