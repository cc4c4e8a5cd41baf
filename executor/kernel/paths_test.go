package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

type implementation struct {
	name string
	run  Func
}

// implementationsOf lists what can serve op on t here: the Go twin, and assembly
// where there is some.
func implementationsOf(op tasks.Op, t tasks.Datatype) []implementation {
	all := []implementation{{"go", portable(op.ID(), t)}}
	if f, name := choose(op.ID(), t); name != "go" {
		all = append(all, implementation{name, f})
	}
	return all
}

// forAssembly runs a subtest for each operation and type that assembly serves.
func forAssembly(t *testing.T, test func(t *testing.T, d tasks.Datatype, twin, fast Func)) {
	found := false
	for _, op := range tasks.Ops() {
		for _, d := range types() {
			if both := implementationsOf(op, d); both[0].run != nil && len(both) == 2 {
				found = true
				t.Run(fmt.Sprintf("%v/%v", op, d), func(t *testing.T) { test(t, d, both[0].run, both[1].run) })
			}
		}
	}
	if !found {
		t.Skip("this CPU runs none of the assembly")
	}
}

// TestPathsAgree compares assembly with its Go twin on all lengths up to 300
// elements at all offsets of up to 15 elements, the result apart or on an operand.
func TestPathsAgree(t *testing.T) {
	forAssembly(t, func(t *testing.T, d tasks.Datatype, twin, fast Func) {
		const seed = 7
		random := rand.New(rand.NewPCG(seed, uint64(d)))
		const longest, offsets = 300, 16
		size := d.Size()
		source := values(random, d, 2*(longest+offsets))
		arena := func() []byte { return bytes.Clone(source[:(longest+offsets)*size]) }
		for length := range longest + 1 {
			for offset := range offsets {
				at := func(b []byte, k int) []byte { return b[k%offsets*size:][:length*size] }
				left, right, result := arena(), bytes.Clone(source[(longest+offsets)*size:]), arena()
				a, b := at(left, offset), at(right, offset*5+3)
				dst, whole := at(result, offset*7+length), result
				switch (length + offset) % 3 {
				case 1:
					dst, whole = a, left
				case 2:
					dst, whole = b, right
				}
				want := make([]byte, len(dst))
				twin(want, a, b)
				before := bytes.Clone(whole)
				fast(dst, a, b)
				if got := bytes.Clone(dst); !bytes.Equal(plainNaN(d, got), plainNaN(d, want)) {
					t.Fatalf("seed %d, length %d, offset %d: bytes differ:\n got %x\nwant %x", seed, length, offset, got, want)
				}
				copy(dst, before[index(whole, dst):])
				if !bytes.Equal(whole, before) {
					t.Fatalf("seed %d, length %d, offset %d: wrote outside the result", seed, length, offset)
				}
			}
		}
	})
}

// index is where part begins in whole.
func index(whole, part []byte) int { return cap(whole) - cap(part) }

// TestPieces passes the border where long reductions are cut.
func TestPieces(t *testing.T) {
	forAssembly(t, func(t *testing.T, d tasks.Datatype, twin, fast Func) {
		random := rand.New(rand.NewPCG(1, uint64(d)))
		count := 2*pieceSize/d.Size() + 7
		a, b := values(random, d, count), values(random, d, count)
		got, want := make([]byte, len(a)), make([]byte, len(a))
		fast(got, a, b)
		twin(want, a, b)
		if !bytes.Equal(plainNaN(d, got), plainNaN(d, want)) {
			t.Error("paths differ")
		}
	})
}

// TestWithoutAVX2 takes the features away.
func TestWithoutAVX2(t *testing.T) {
	withoutFeatures(t)
	for _, op := range tasks.Ops() {
		for _, d := range types() {
			if name := Impl(op, d); name != "" && name != "go" {
				t.Errorf("%v of %v is served by %s", op, d, name)
			}
		}
	}
	dst := []float32{6, 9}
	Finish(tasks.Average, tasks.Float32, 3, 3)(bytesOf(dst))
	if dst[0] != 2 || dst[1] != 3 {
		t.Errorf("average: %v, want 2 and 3", dst)
	}
}

// FuzzReduce compares assembly with its Go twin.
func FuzzReduce(f *testing.F) {
	for _, op := range tasks.Ops() {
		for _, d := range tasks.Datatypes() {
			f.Add(uint8(op.ID()), uint8(d), bytes.Repeat([]byte{0, 0x80, 0x7f, 0xff, 0xc0, 1, 0x7c}, 20))
		}
	}
	f.Fuzz(func(t *testing.T, id, element uint8, data []byte) {
		d := tasks.Datatype(element)
		if ops := tasks.Ops(); id == 0 || int(id) > len(ops) || !d.Valid() {
			return
		}
		both := implementationsOf(tasks.Ops()[id-1], d)
		if both[0].run == nil || len(both) < 2 {
			return
		}
		n := len(data) / 2 / d.Size() * d.Size()
		a, b := aligned(data[:n]), aligned(data[n:2*n])
		got, want := aligned(a), aligned(a)
		both[0].run(want, a, b)
		both[1].run(got, got, b)
		if !bytes.Equal(plainNaN(d, got), plainNaN(d, want)) {
			t.Errorf("%v of %v: %x and %x:\n got %x\nwant %x", tasks.Ops()[id-1], d, a, b, got, want)
		}
	})
}

// aligned copies bytes to where any element type may begin.
func aligned(b []byte) []byte {
	words := make([]complex128, len(b)/16+1)
	return append(bytesOf(words)[:0], b...)
}

func bytesOf[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// values returns count elements: random bits, often special numbers.
func values(random *rand.Rand, d tasks.Datatype, count int) []byte {
	specials := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-24, 65504, 1.5, 0x1p-149, 3e38}
	special := func() float64 { return specials[random.IntN(len(specials))] }
	b := aligned(make([]byte, count*d.Size()))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	switch d {
	case tasks.Float16:
		sprinkle(random, b, func() half.Float16 { return half.NewFloat16(float32(special())) })
	case tasks.BFloat16:
		sprinkle(random, b, func() half.BFloat16 { return half.NewBFloat16(float32(special())) })
	case tasks.Float32, tasks.Complex64:
		sprinkle(random, b, func() float32 { return float32(special()) })
	case tasks.Float64, tasks.Complex128:
		sprinkle(random, b, special)
	}
	return b
}

func sprinkle[T any](random *rand.Rand, b []byte, special func() T) {
	s := elements[T](b)
	for i := range s {
		if random.IntN(2) == 0 {
			s[i] = special()
		}
	}
}

// plainNaN gives all NaNs in b the same bits, in place: which of two NaNs comes
// out is not specified.
func plainNaN(d tasks.Datatype, b []byte) []byte {
	switch d {
	case tasks.Float16:
		replaceNaN(b, half.NewFloat16(float32(math.NaN())), func(x half.Float16) bool { return x&0x7fff > 0x7c00 })
	case tasks.BFloat16:
		replaceNaN(b, half.NewBFloat16(float32(math.NaN())), func(x half.BFloat16) bool { return x&0x7fff > 0x7f80 })
	case tasks.Float32, tasks.Complex64:
		replaceNaN(b, float32(math.NaN()), func(x float32) bool { return x != x })
	case tasks.Float64, tasks.Complex128:
		replaceNaN(b, math.NaN(), func(x float64) bool { return x != x })
	}
	return b
}

func replaceNaN[T any](b []byte, nan T, isNaN func(T) bool) {
	s := elements[T](b)
	for i, x := range s {
		if isNaN(x) {
			s[i] = nan
		}
	}
}
