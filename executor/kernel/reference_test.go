package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// exactly computes in unlimited precision and rounds once to float32.
func exactly(op tasks.Op, a, b float32) float32 {
	x, y := big.NewFloat(float64(a)), big.NewFloat(float64(b))
	r := new(big.Float).SetPrec(1000)
	switch op {
	case tasks.Sum:
		r.Add(x, y)
	case tasks.Prod:
		r.Mul(x, y)
	}
	f, _ := r.Float32()
	return f
}

// testReference compares finite operands; the result is rounded by round.
func testReference[T any](t *testing.T, op tasks.Op, random func() T, toFloat32 func(T) float32, round func(float32) T) {
	t.Helper()
	const count = 20_000
	var a, b, want []T
	for len(a) < count {
		x, y := random(), random()
		if !finite(toFloat32(x)) || !finite(toFloat32(y)) {
			continue
		}
		r := exactly(op, toFloat32(x), toFloat32(y))
		if r == 0 {
			continue // big.Float has another sign of zero
		}
		a, b, want = append(a, x), append(b, y), append(want, round(r))
	}
	combine(t, op, a, b, want)
}

func finite(f float32) bool { return !math.IsInf(float64(f), 0) && f == f }

// TestReference holds sums and products against big.Float: float32 by itself, the
// 16-bit types through float32 (package half tests their rounding).
func TestReference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, op := range []tasks.Op{tasks.Sum, tasks.Prod} {
		testReference(t, op, func() float32 { return math.Float32frombits(random.Uint32()) },
			func(x float32) float32 { return x }, func(x float32) float32 { return x })
		testReference(t, op, func() half.Float16 { return half.Float16(random.Uint32()) }, half.Float16.Float32, half.NewFloat16)
		testReference(t, op, func() half.BFloat16 { return half.BFloat16(random.Uint32()) }, half.BFloat16.Float32, half.NewBFloat16)
	}
}

func TestFinish(t *testing.T) {
	if Finish(tasks.Sum, tasks.Float32, 3, 3) != nil || Finish(tasks.Average, tasks.Int32, 3, 3) != nil {
		t.Error("something to finish for an operation that divides nothing")
	}
	for _, ranks := range []int{1, 2, 3, 7, 257, 2049, 4097} { // the last three are no 16-bit floats
		n := float32(ranks)
		testFinish(t, ranks, func(x float32) float32 { return x }, func(x float32) float32 { return x / n })
		testFinish(t, ranks, func(x float32) float64 { return float64(x) }, func(x float64) float64 { return x / float64(ranks) })
		share := powerOfTwo(ranks)
		testFinish(t, ranks, half.NewFloat16, func(x half.Float16) half.Float16 { return half.NewFloat16(x.Float32() / (n / share)) })
		testFinish(t, ranks, half.NewBFloat16, func(x half.BFloat16) half.BFloat16 { return half.NewBFloat16(x.Float32() / n) })
		testFinish(t, ranks, func(x float32) complex64 { return complex(x, -x) },
			func(x complex64) complex64 { return complex(real(x)/n, imag(x)/n) })
		testFinish(t, ranks, func(x float32) complex128 { return complex(float64(x), 5) },
			func(x complex128) complex128 { return complex(real(x)/float64(ranks), imag(x)/float64(ranks)) })
	}
}

// TestScale: operands of Float16 averages, and of no others, are divided by a power of two.
func TestScale(t *testing.T) {
	for _, op := range []tasks.Op{tasks.Sum, tasks.Average} {
		for _, d := range tasks.Datatypes() {
			if got, want := Scale(op, d, 3) != nil, op == tasks.Average && d == tasks.Float16; got != want {
				t.Errorf("%v of %v is scaled: %v", op, d, got)
			}
		}
	}
	var in []half.Float16
	for i := range 1 << 16 { // all there are
		in = append(in, half.Float16(i))
	}
	for _, ranks := range []int{1, 2, 3, 8, 1000, 40000} { // the last power is no 16-bit float
		got, by := slices.Clone(in), powerOfTwo(ranks)
		scale := Scale(tasks.Average, tasks.Float16, ranks)
		if (scale == nil) != (ranks == 1) {
			t.Fatalf("%d ranks: scaled %v", ranks, scale != nil)
		}
		if scale == nil {
			continue
		}
		scale(bytesOf(got), bytesOf(in))
		for i, x := range in {
			if want := half.NewFloat16(x.Float32() / by); !equal(got[i], want) {
				t.Fatalf("%v / %v = %v, want %v", x.Float32(), by, got[i].Float32(), want.Float32())
			}
		}
	}
}

// powerOfTwo is the smallest one not below n.
func powerOfTwo(n int) float32 {
	p := 1
	for p < n {
		p *= 2
	}
	return float32(p)
}

func testFinish[T any](t *testing.T, ranks int, from func(float32) T, divided func(T) T) {
	t.Helper()
	d, err := tasks.DatatypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	inputs := []float32{0, -1, 1, 3, 1e-3, 100, 60000, float32(inf), float32(-inf), float32(nan)}
	var in []T
	for i := range 5000 { // longer than the slice of divisors
		in = append(in, from(inputs[i%len(inputs)]*float32(1+i/len(inputs)%5)))
	}
	got := append([]T(nil), in...)
	if finish := Finish(tasks.Average, d, ranks, ranks); finish != nil { // there is none for Float16 and a power of two
		finish(bytesOf(got))
	}
	for i, x := range in {
		if want := divided(x); !equal(got[i], want) {
			t.Fatalf("%v, element %d: %v / %d = %v, want %v", d, i, x, ranks, got[i], want)
		}
	}
}
