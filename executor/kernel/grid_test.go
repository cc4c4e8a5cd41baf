package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawF32 is any float but NaN and infinities, below 2^top.
func drawF32(draw *rand.Rand, top int) float32 {
	v := float32(math.Ldexp(draw.Float64()*2-1, top-draw.IntN(40)))
	if draw.IntN(10) == 0 { // in the middle between two integers, or one
		v = float32(math.Ldexp(math.Trunc(float64(v)*2)/2, 0))
	}
	return v
}

// nearest is x·2^k as math/big rounds it to an integer, ties to even.
func nearest(x float32, k int) int64 {
	v := new(big.Float).SetMantExp(big.NewFloat(float64(x)), k)
	floor, _ := new(big.Float).Copy(v).Int(nil)
	if v.Sign() < 0 && new(big.Float).SetInt(floor).Cmp(v) != 0 {
		floor.Sub(floor, big.NewInt(1))
	}
	rest := v.Sub(v, new(big.Float).SetInt(floor))
	n := floor.Int64()
	switch c := rest.Cmp(big.NewFloat(0.5)); {
	case c > 0, c == 0 && n&1 == 1:
		n++
	}
	return n
}

// Assembly and Go round as math/big does, for any length, place, scale and element.
func TestGridLoops(t *testing.T) {
	check := func(t *testing.T, draw *rand.Rand) {
		n, from := draw.IntN(200), draw.IntN(9)
		k := draw.IntN(245) - 96            // of the scale
		x := make([]float32, from+n)[from:] // at any address
		acc, want := make([]int32, from+n)[from:], make([]int32, n)
		most := uint32(0)
		for i := range x {
			x[i] = float32(math.Ldexp(float64(drawF32(draw, 30)), -k)) // may be subnormal, or 0
			acc[i] = int32(draw.Uint32()) >> 2
			want[i] = acc[i] + int32(nearest(x[i], k))
			most = max(most, math.Float32bits(x[i])&math.MaxInt32)
		}
		if got := LargestF32(x); got != most {
			t.Fatalf("largest of %v: %x, want %x", x, got, most)
		}
		AddMultiplesF32(acc, x, math.Ldexp(1, k))
		if !slices.Equal(acc, want) {
			t.Fatalf("multiples of 2^%d in %v: %v, want %v", -k, x, acc, want)
		}
		dst := make([]float32, from+n)[from:]
		MultiplyF32(dst, acc, math.Ldexp(1, -k))
		for i, q := range acc {
			exact, _ := new(big.Float).SetMantExp(big.NewFloat(float64(q)), -k).Float32()
			if math.Float32bits(dst[i]) != math.Float32bits(exact) {
				t.Fatalf("%d·2^%d is %g, want %g", q, -k, dst[i], exact)
			}
		}
	}
	run := func(t *testing.T) {
		for seed := range uint64(300) {
			check(t, rand.New(rand.NewPCG(seed, 8)))
		}
	}
	t.Run("assembly", run)
	t.Run("go", func(t *testing.T) {
		withoutFeatures(t)
		run(t)
	})
}

// NaN are above infinities, and these above numbers.
func TestLargestSpecial(t *testing.T) {
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	for at := range 24 {
		x := make([]float32, 24)
		x[(at+5)%24] = math.MaxFloat32
		x[at] = inf
		if got := LargestF32(x) >> 23; got != 0xff {
			t.Errorf("with -Inf at %d: %x", at, got)
		}
		x[(at+7)%24] = nan
		if got := LargestF32(x); got <= math.Float32bits(-inf) {
			t.Errorf("with NaN too: %x", got)
		}
	}
}

// FuzzGridLoops compares assembly with Go for any bits of one element among others.
func FuzzGridLoops(f *testing.F) {
	f.Add(uint32(0x3f000000), int16(0), uint8(3))
	f.Add(uint32(0x80000001), int16(149), uint8(8))
	f.Fuzz(func(t *testing.T, bits uint32, k int16, at uint8) {
		v := math.Float32frombits(bits)
		scale := math.Ldexp(1, int(k)%300)
		x := make([]float32, 16)
		x[at%16] = v
		if LargestF32(x) != bits&math.MaxInt32 {
			t.Fatalf("largest is %x", LargestF32(x))
		}
		if !(math.Abs(float64(v)*scale) < 1<<30) { // NaN too
			return
		}
		acc, one := make([]int32, 16), make([]int32, 1)
		AddMultiplesF32(acc, x, scale)
		AddMultiplesF32(one, x[at%16:][:1], scale) // a single element is Go's
		if acc[at%16] != one[0] || int64(one[0]) != nearest(v, int(k)%300) {
			t.Fatalf("%g·%g is %d, %d alone; want %d", v, scale, acc[at%16], one[0], nearest(v, int(k)%300))
		}
	})
}
