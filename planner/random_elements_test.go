package planner_test

import (
	"cmp"
	"context"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// randomType is an element type with its reductions.
type randomType interface {
	String() string
	reductions() []string
	users(name string) bool // whether it is a user's operation
	call(p *randomPlayer, o *randomOp, twist randomTwist) randomCall
	transfer(p *randomPlayer, o *randomOp) randomTransfer
}

// randomCall is one rank's part of a collective.
type randomCall interface {
	create() error // once, before run and start
	now(ctx context.Context) error
	run(ctx context.Context) error
	start(ctx context.Context) (wait func() error, err error)
	drop()                      // frees the buffers of a call that can't be made
	over(err error, final bool) // checks what a call has left; final: the buffers aren't needed any more
}

// randomTransfer is one rank's part of a message.
type randomTransfer interface {
	now(ctx context.Context) error
	start(ctx context.Context) (wait func() error, err error)
	over(err error)
}

// elements is T with what combines it.
type elements[T comparable] struct {
	name  string
	value func(hash uint64) T
	ops   []reduction[T]
}

// reduction is an operation and what it is in plain Go. Inputs are such that the
// order of operands, where an operation may choose it, changes no bit.
type reduction[T comparable] struct {
	op     tasks.Op
	fold   func(a, b T) T
	value  func(hash uint64) T     // nil: any
	finish func(sum T, size int) T // nil: none
}

func (e *elements[T]) String() string { return e.name }

func (e *elements[T]) reductions() (names []string) {
	for _, o := range e.ops {
		names = append(names, o.op.String())
	}
	return names
}

func (e *elements[T]) users(name string) bool { return e.reduction(name).op.ID() == tasks.OpUser }

func (e *elements[T]) reduction(name string) *reduction[T] {
	for i := range e.ops {
		if e.ops[i].op.String() == name {
			return &e.ops[i]
		}
	}
	return &reduction[T]{}
}

// own makes a user's operation.
func own[T comparable](name string, commutative bool, fold func(a, b T) T) reduction[T] {
	return reduction[T]{op: tasks.UserOp(name, commutative, fold), fold: fold}
}

// ends keeps rank order: it shows where operands have changed places.
func ends[T comparable]() []reduction[T] {
	return []reduction[T]{
		own("first", false, func(a, _ T) T { return a }),
		own("last", false, func(_, b T) T { return b }),
	}
}

type anyInteger interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func truth[T anyInteger](t bool) T {
	if t {
		return 1
	}
	return 0
}

func integers[T anyInteger](name string) *elements[T] {
	e := &elements[T]{name: name, value: func(h uint64) T { return T(h) }}
	some := func(h uint64) T { return T(h % 3) } // zero often enough
	e.ops = append(ends[T](), []reduction[T]{
		{op: tasks.Sum, fold: func(a, b T) T { return a + b }},
		{op: tasks.Prod, fold: func(a, b T) T { return a * b }},
		{op: tasks.Min, fold: func(a, b T) T { return min(a, b) }},
		{op: tasks.Max, fold: func(a, b T) T { return max(a, b) }},
		{op: tasks.Band, fold: func(a, b T) T { return a & b }},
		{op: tasks.Bor, fold: func(a, b T) T { return a | b }},
		{op: tasks.Bxor, fold: func(a, b T) T { return a ^ b }},
		{op: tasks.Land, fold: func(a, b T) T { return truth[T](a != 0 && b != 0) }, value: some},
		{op: tasks.Lor, fold: func(a, b T) T { return truth[T](a != 0 || b != 0) }, value: some},
		{op: tasks.Lxor, fold: func(a, b T) T { return truth[T]((a != 0) != (b != 0)) }, value: some},
		own("xnor", true, func(a, b T) T { return ^(a ^ b) }),
	}...)
	return e
}

// few are values whose sums are exact in eight bits, powers those whose products are.
func few(h uint64) float64    { return float64(int(h%15) - 7) }
func powers(h uint64) float64 { return []float64{1, -1, 2, -2, 0.5}[h%5] }

func floats[T ~float32 | ~float64](name string) *elements[T] {
	e := &elements[T]{name: name, value: func(h uint64) T { return T(few(h)) }}
	e.ops = append(ends[T](), []reduction[T]{
		{op: tasks.Sum, fold: func(a, b T) T { return a + b }},
		{op: tasks.Prod, fold: func(a, b T) T { return a * b }, value: func(h uint64) T { return T(powers(h)) }},
		{op: tasks.Min, fold: func(a, b T) T { return min(a, b) }},
		{op: tasks.Max, fold: func(a, b T) T { return max(a, b) }},
		{op: tasks.Average, fold: func(a, b T) T { return a + b }, finish: func(sum T, n int) T { return sum / T(n) }},
		own("larger", true, func(a, b T) T { return max(a, b) }),
	}...)
	return e
}

func halves[T half.Float16 | half.BFloat16](name string, narrow func(float32) T, wide func(T) float32) *elements[T] {
	in32 := func(f func(a, b float32) float32) func(a, b T) T {
		return func(a, b T) T { return narrow(f(wide(a), wide(b))) }
	}
	e := &elements[T]{name: name, value: func(h uint64) T { return narrow(float32(few(h))) }}
	add := in32(func(a, b float32) float32 { return a + b })
	e.ops = append(ends[T](), []reduction[T]{
		{op: tasks.Sum, fold: add},
		{op: tasks.Prod, fold: in32(func(a, b float32) float32 { return a * b }), value: func(h uint64) T { return narrow(float32(powers(h))) }},
		{op: tasks.Min, fold: in32(func(a, b float32) float32 { return min(a, b) })},
		{op: tasks.Max, fold: in32(func(a, b float32) float32 { return max(a, b) })},
		{op: tasks.Average, fold: add, finish: func(sum T, n int) T { return narrow(wide(sum) / float32(n)) }},
	}...)
	return e
}

func complexNumbers(name string) *elements[complex128] {
	e := &elements[complex128]{name: name, value: func(h uint64) complex128 { return complex(few(h), few(h>>8)) }}
	e.ops = append(ends[complex128](), []reduction[complex128]{
		{op: tasks.Sum, fold: func(a, b complex128) complex128 { return a + b }},
		{
			op: tasks.Prod, fold: func(a, b complex128) complex128 { return a * b },
			value: func(h uint64) complex128 { return []complex128{1, 1i, -1, -2i, 2}[h%5] },
		},
	}...)
	return e
}

func locs[T tasks.LocValue](name string) *elements[tasks.Loc[T]] {
	type loc = tasks.Loc[T]
	e := &elements[loc]{name: name, value: func(h uint64) loc { return loc{Value: T(h % 4), Index: int64((h >> 8) % 5)} }}
	pick := func(sign int) func(a, b loc) loc {
		return func(a, b loc) loc {
			if c := sign * cmp.Compare(a.Value, b.Value); c < 0 || c == 0 && a.Index <= b.Index {
				return a
			}
			return b
		}
	}
	e.ops = append(ends[loc](), reduction[loc]{op: tasks.MinLoc, fold: pick(1)}, reduction[loc]{op: tasks.MaxLoc, fold: pick(-1)})
	return e
}

// affine composes x → ax+b modulo 2³²: associative, and nothing else.
func affine() *elements[uint64] {
	e := integers[uint64]("u64")
	e.ops = append(e.ops, own("affine", false, func(f, g uint64) uint64 {
		a, b, c, d := uint32(f>>32), uint32(f), uint32(g>>32), uint32(g)
		return uint64(a*c)<<32 | uint64(b*c+d)
	}))
	return e
}

type (
	kelvin float32
	money  int64
	bounds struct { // of some readings
		n         int32
		low, high float32
	}
	triple [3]uint64
)

func bools() *elements[bool] {
	return &elements[bool]{name: "bool", value: func(h uint64) bool { return h%3 > 0 }, ops: append(ends[bool](), []reduction[bool]{
		{op: tasks.Land, fold: func(a, b bool) bool { return a && b }},
		{op: tasks.Lor, fold: func(a, b bool) bool { return a || b }},
		{op: tasks.Lxor, fold: func(a, b bool) bool { return a != b }},
		own("same", true, func(a, b bool) bool { return a == b }),
	}...)}
}

// records have operations of users only.
func records[T comparable](name string, value func(h uint64) T, merge func(a, b T) T) *elements[T] {
	return &elements[T]{name: name, value: value, ops: append(ends[T](), own("merge", true, merge))}
}

// randomTypes are the element types of random programs.
var randomTypes = []randomType{
	integers[int32]("i32"), integers[int64]("i64"), affine(), integers[uint8]("u8"), floats[float64]("f64"), floats[float32]("f32"),
	integers[int8]("i8"), integers[int16]("i16"), integers[uint16]("u16"), integers[uint32]("u32"), integers[int]("int"), integers[money]("money"),
	floats[kelvin]("kelvin"), complexNumbers("c128"), locs[int32]("loc(i32)"), locs[float64]("loc(f64)"),
	bools(), records("bounds", func(h uint64) bounds {
		return bounds{int32(h % 5), float32(few(h >> 8)), float32(few(h >> 16))}
	}, func(a, b bounds) bounds { return bounds{a.n + b.n, min(a.low, b.low), max(a.high, b.high)} }),
	records("triple", func(h uint64) triple { return triple{h, mix(h), mix(h, h)} }, func(a, b triple) triple {
		return triple{a[0] + b[0], a[1] ^ b[1], a[2] * b[2]}
	}),
	halves("f16", half.NewFloat16, half.Float16.Float32), halves("bf16", half.NewBFloat16, half.BFloat16.Float32),
}

// mix is a hash of numbers.
func mix(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h ^= w + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
