package kernel

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// TestForAllowed states which operation is defined on what.
func TestForAllowed(t *testing.T) {
	integer := func(d tasks.Datatype) bool { return d <= tasks.Uint64 }
	isComplex := func(d tasks.Datatype) bool { return d == tasks.Complex64 || d == tasks.Complex128 }
	for _, op := range tasks.Ops() {
		for _, d := range types() {
			_, loc := d.Loc()
			var want bool
			switch op {
			case tasks.Sum, tasks.Prod:
				want = !loc
			case tasks.Min, tasks.Max:
				want = !loc && !isComplex(d)
			case tasks.MinLoc, tasks.MaxLoc:
				want = loc
			case tasks.Average:
				want = !loc && !integer(d)
			default:
				want = integer(d)
			}
			f, err := For(op, d)
			if (err == nil) != want || (f != nil) != want || (Impl(op, d) != "") != want {
				t.Errorf("For(%v, %v): func %t, error %v, implementation %q; defined should be %t", op, d, f != nil, err, Impl(op, d), want)
			}
		}
	}
}

func TestForErrors(t *testing.T) {
	add := tasks.UserOp("add", true, func(a, b float64) float64 { return a + b })
	structs := tasks.UserOp("merge", true, func(a, _ struct{ x, y int }) struct{ x, y int } { return a })
	for _, c := range []struct {
		name string
		op   tasks.Op
		d    tasks.Datatype
		want []string
	}{
		{"pair", tasks.Min, tasks.Complex64, []string{"min is not defined on c64", "i8", "f64", "sum prod average"}},
		{"integer average", tasks.Average, tasks.Int32, []string{"average is not defined on i32", "f16 bf16 f32 f64 c64 c128"}},
		{"no op", tasks.Op{}, tasks.Int8, []string{"Op(0)"}},
		{"no type", tasks.Sum, 0, []string{"Datatype(0)"}},
		{"loc of complex", tasks.MinLoc, tasks.LocOf(tasks.Complex64), []string{"invalid datatype"}},
		{"user's type", add, tasks.Float32, []string{"add", "f64", "f32"}},
		{"user's struct", structs, tasks.Float32, []string{"merge", "struct"}},
	} {
		f, err := For(c.op, c.d)
		if err == nil || f != nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q doesn't say %q", c.name, err, part)
			}
		}
	}
}

// combine runs both paths of op on values and wants the same from both.
func combine[T any](t *testing.T, op tasks.Op, a, b, want []T) {
	t.Helper()
	d, err := tasks.DatatypeOf[T]()
	if err != nil {
		t.Fatal(err)
	}
	// Repeated so that the values pass through whole blocks and the rest.
	times := 37
	if len(a) > 1000 {
		times = 1
	}
	for _, impl := range implementationsOf(op, d) {
		x, y := repeat(a, times), repeat(b, times)
		impl.run(bytesOf(x), bytesOf(x), bytesOf(y))
		for i := range x {
			if w := want[i%len(want)]; !equal(x[i], w) {
				t.Errorf("%v of %v, %s, element %d: %v ⊕ %v = %v, want %v", op, d, impl.name, i, a[i%len(a)], y[i], x[i], w)
				break
			}
		}
	}
}

// equal tells −0 from +0, and takes all NaNs for the same.
func equal[T any](x, y T) bool { return canonical(x) == canonical(y) }

func canonical(x any) any {
	bits := func(f float64) uint64 {
		if math.IsNaN(f) {
			return math.Float64bits(nan)
		}
		return math.Float64bits(f)
	}
	switch x := x.(type) {
	case half.Float16:
		return bits(float64(x.Float32()))
	case half.BFloat16:
		return bits(float64(x.Float32()))
	case float32:
		return bits(float64(x))
	case float64:
		return bits(x)
	case complex64:
		return [2]uint64{bits(float64(real(x))), bits(float64(imag(x)))}
	case complex128:
		return [2]uint64{bits(real(x)), bits(imag(x))}
	case tasks.Loc[float64]:
		return [2]uint64{bits(x.Value), uint64(x.Index)}
	}
	return x
}

func repeat[T any](s []T, times int) []T {
	var all []T
	for range times {
		all = append(all, s...)
	}
	return all
}

var (
	nan     = math.NaN()
	negZero = math.Copysign(0, -1)
	inf     = math.Inf(1)
)

// minMax are a, b, the minimum and the maximum.
var minMax = [][4]float64{
	{1, 2, 1, 2},
	{2, 1, 1, 2},
	{-1, 1, -1, 1},
	{1, nan, nan, nan},
	{nan, 1, nan, nan},
	{-inf, nan, nan, nan},
	{nan, inf, nan, nan},
	{nan, nan, nan, nan},
	{-nan, 0, nan, nan},
	{0, negZero, negZero, 0},
	{negZero, 0, negZero, 0},
	{negZero, negZero, negZero, negZero},
	{0, 0, 0, 0},
	{inf, -inf, -inf, inf},
	{1, 1, 1, 1},
}

func testMinMax[T any](t *testing.T, from func(float64) T) {
	var column [4][]T
	for _, row := range minMax {
		for i, x := range row {
			column[i] = append(column[i], from(x))
		}
	}
	combine(t, tasks.Min, column[0], column[1], column[2])
	combine(t, tasks.Max, column[0], column[1], column[3])
}

func TestMinMax(t *testing.T) {
	testMinMax(t, func(x float64) float64 { return x })
	testMinMax(t, func(x float64) float32 { return float32(x) })
	testMinMax(t, func(x float64) half.Float16 { return half.NewFloat16(float32(x)) })
	testMinMax(t, func(x float64) half.BFloat16 { return half.NewBFloat16(float32(x)) })
	combine(t, tasks.Min, []int64{math.MinInt64, 5, -1, 0}, []int64{math.MaxInt64, -5, -2, 0}, []int64{math.MinInt64, -5, -2, 0})
	combine(t, tasks.Max, []int64{math.MinInt64, 5, -1, 0}, []int64{math.MaxInt64, -5, -2, 0}, []int64{math.MaxInt64, 5, -1, 0})
	combine(t, tasks.Min, []uint64{math.MaxUint64, 1}, []uint64{1, 1 << 63}, []uint64{1, 1})
	combine(t, tasks.Max, []uint64{math.MaxUint64, 1}, []uint64{1, 1 << 63}, []uint64{math.MaxUint64, 1 << 63})
	combine(t, tasks.Max, []uint8{200, 1}, []uint8{100, 128}, []uint8{200, 128})
	combine(t, tasks.Max, []int8{-56, 1}, []int8{100, -128}, []int8{100, 1})
}

func TestIntegers(t *testing.T) {
	combine(t, tasks.Sum, []int8{127, -128}, []int8{1, -1}, []int8{-128, 127})
	combine(t, tasks.Sum, []uint16{65535}, []uint16{2}, []uint16{1})
	combine(t, tasks.Sum, []int32{math.MaxInt32}, []int32{1}, []int32{math.MinInt32})
	combine(t, tasks.Sum, []uint64{math.MaxUint64}, []uint64{1}, []uint64{0})
	combine(t, tasks.Prod, []int32{1 << 20, -3}, []int32{1 << 13, 7}, []int32{0, -21})
	combine(t, tasks.Prod, []int8{64, -3}, []int8{4, 7}, []int8{0, -21})
	combine(t, tasks.Prod, []uint16{1 << 9}, []uint16{1<<8 | 1}, []uint16{1 << 9})
	combine(t, tasks.Band, []uint8{0b1100}, []uint8{0b1010}, []uint8{0b1000})
	combine(t, tasks.Bor, []uint8{0b1100}, []uint8{0b1010}, []uint8{0b1110})
	combine(t, tasks.Bxor, []int64{-1}, []int64{1}, []int64{-2})
	a, b := []int32{0, 0, 7, -7}, []int32{0, 5, 0, 2}
	combine(t, tasks.Land, a, b, []int32{0, 0, 0, 1})
	combine(t, tasks.Lor, a, b, []int32{0, 1, 1, 1})
	combine(t, tasks.Lxor, a, b, []int32{0, 1, 1, 0})
}

func TestComplex(t *testing.T) {
	combine(t, tasks.Sum, []complex64{1 + 2i}, []complex64{3 - 5i}, []complex64{4 - 3i})
	combine(t, tasks.Prod, []complex128{1 + 2i}, []complex128{3 - 5i}, []complex128{13 + 1i})
}

// loc is shorter than the literal.
func loc[T tasks.LocValue](value T, index int64) tasks.Loc[T] {
	return tasks.Loc[T]{Value: value, Index: index}
}

func TestLoc(t *testing.T) {
	type L = tasks.Loc[float64]
	for _, c := range []struct{ a, b, least, greatest L }{
		{loc(1.0, 4), loc(2.0, 1), loc(1.0, 4), loc(2.0, 1)},
		{loc(2.0, 4), loc(1.0, 5), loc(1.0, 5), loc(2.0, 4)},
		{loc(2.0, 4), loc(2.0, 3), loc(2.0, 3), loc(2.0, 3)},
		{loc(nan, 4), loc(-inf, 1), loc(nan, 4), loc(nan, 4)},
		{loc(1.0, 1), loc(nan, 9), loc(nan, 9), loc(nan, 9)},
		{loc(nan, 4), loc(nan, 2), loc(nan, 2), loc(nan, 2)},
		{loc(0.0, 1), loc(negZero, 2), loc(negZero, 2), loc(0.0, 1)},
		{loc(-inf, 1), loc(inf, 2), loc(-inf, 1), loc(inf, 2)},
	} {
		combine(t, tasks.MinLoc, []L{c.a}, []L{c.b}, []L{c.least})
		combine(t, tasks.MaxLoc, []L{c.a}, []L{c.b}, []L{c.greatest})
	}

	type H = tasks.Loc[half.Float16]
	one, minusOne := loc(half.NewFloat16(1), 1), loc(half.NewFloat16(-1), 2) // −1 has the larger bits
	combine(t, tasks.MinLoc, []H{one}, []H{minusOne}, []H{minusOne})
	combine(t, tasks.MaxLoc, []H{one}, []H{minusOne}, []H{one})
	type I = tasks.Loc[int8]
	combine(t, tasks.MaxLoc, []I{loc[int8](-3, 2), loc[int8](7, 9)}, []I{loc[int8](-2, 9), loc[int8](7, -8)},
		[]I{loc[int8](-2, 9), loc[int8](7, -8)})
}

func TestUserOp(t *testing.T) {
	type celsius float64
	minus := tasks.UserOp("minus", false, func(a, b celsius) celsius { return a - b })
	f, err := For(minus, tasks.Float64)
	if err != nil {
		t.Fatal(err)
	}
	a, b := []celsius{10, 20, 30}, []celsius{1, 2, 3}
	f(bytesOf(b), bytesOf(a), bytesOf(b)) // into b: the order of the operands stays
	if diff := cmp.Diff([]celsius{9, 18, 27}, b); diff != "" {
		t.Error(diff)
	}
}

// TestShortOperand: a mistake must not reach assembly, which checks nothing.
func TestShortOperand(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an operand shorter than the result did not panic")
		}
	}()
	f, err := For(tasks.Sum, tasks.Float32)
	if err != nil {
		t.Fatal(err)
	}
	f(make([]byte, 64), make([]byte, 64), make([]byte, 32))
}

func TestNoAllocations(t *testing.T) {
	buf := make([]byte, 1<<10)
	for _, op := range tasks.Ops() {
		for _, d := range types() {
			f, err := For(op, d)
			if err != nil {
				continue
			}
			scale, finish := Scale(op, d, 3), Finish(op, d, 3, 3)
			if n := testing.AllocsPerRun(3, func() {
				if scale != nil {
					scale(buf[:1000], buf[:1000])
				}
				f(buf[:1000], buf[:1000], buf[:1000])
				if finish != nil {
					finish(buf[:1000])
				}
			}); n != 0 {
				t.Errorf("%v of %v allocates %v times", op, d, n)
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	s := Describe()
	if got, want := strings.Count(s, "\n"), 1+len(types()); got != want {
		t.Errorf("%d lines, want %d:\n%s", got, want, s)
	}
	line := s[strings.Index(s, "\nloc(f64)")+1:]
	line, _, _ = strings.Cut(line, "\n")
	if got, want := strings.Join(strings.Fields(line), " "), "loc(f64) - - - - go go - - - - - - -"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}
