package half

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// layout describes a format to the slow twin.
type layout struct {
	digits   int // of the fraction, with the hidden one
	smallest int // exponent of the smallest normal number
	largest  float64
}

var (
	binary16 = layout{11, -14, 65504}
	brain    = layout{8, -126, 0x1.fep127}
)

// round is rounding to nearest even in big.Float.
func (l layout) round(f float32) float64 {
	if f == 0 || math.IsInf(float64(f), 0) {
		return float64(f)
	}
	x := big.NewFloat(float64(f))
	digits := min(l.digits, l.digits+x.MantExp(nil)-1-l.smallest)
	if digits <= 0 { // at most the smallest number of all; half of it is a tie with zero
		least := math.Ldexp(1, l.smallest-l.digits+1)
		if math.Abs(float64(f)) <= least/2 {
			least = 0
		}
		return math.Copysign(least, float64(f))
	}
	r, _ := x.SetMode(big.ToNearestEven).SetPrec(uint(digits)).Float64()
	if math.Abs(r) > l.largest {
		return math.Copysign(math.Inf(1), r)
	}
	return r
}

// inputs are random floats, and for all 16-bit numbers those around it and around
// the middle to the next one.
func inputs(widen func(uint16) float32) []float32 {
	random := rand.New(rand.NewPCG(1, 2))
	var all []float32
	for h := range 1 << 16 {
		all = append(all, math.Float32frombits(random.Uint32()))
		x, next := widen(uint16(h)), widen(uint16(h+1))
		middle := float32((float64(x) + float64(next)) / 2)
		for _, f := range []float32{x, middle} {
			all = append(all, math.Nextafter32(f, float32(math.Inf(-1))), f, math.Nextafter32(f, float32(math.Inf(1))))
		}
	}
	return all
}

func check(t *testing.T, l layout, widen func(uint16) float32, narrow func(float32) float32) {
	t.Helper()
	failures := 0
	for _, f := range inputs(widen) {
		got := float64(narrow(f))
		if f != f {
			if got == got {
				t.Fatalf("NaN %08x became %v", math.Float32bits(f), got)
			}
			continue
		}
		if want := l.round(f); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%v (%08x) became %v, want %v", f, math.Float32bits(f), got, want)
			if failures++; failures > 10 {
				t.FailNow()
			}
		}
	}
}

func TestRounding(t *testing.T) {
	check(t, binary16, func(h uint16) float32 { return Float16(h).Float32() }, func(f float32) float32 { return NewFloat16(f).Float32() })
	check(t, brain, func(h uint16) float32 { return BFloat16(h).Float32() }, func(f float32) float32 { return NewBFloat16(f).Float32() })
}

// value is what the bits mean, by the definition of the format.
func (l layout) value(bits uint16) float64 {
	fractionBits := l.digits - 1
	exponent := int(bits&0x7fff) >> fractionBits
	fraction := float64(int(bits) & (1<<fractionBits - 1))
	all := 1<<(15-fractionBits) - 1
	var v float64
	switch {
	case exponent == all && fraction != 0:
		return math.NaN()
	case exponent == all:
		v = math.Inf(1)
	case exponent == 0:
		v = math.Ldexp(fraction, l.smallest-fractionBits)
	default:
		v = math.Ldexp(fraction+float64(int(1)<<fractionBits), exponent-1+l.smallest-fractionBits)
	}
	if bits>>15 != 0 {
		v = -v
	}
	return v
}

// TestAllValues walks all 16-bit patterns: their values, and there and back.
func TestAllValues(t *testing.T) {
	same := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y }
	for i := range 1 << 16 {
		h, b := Float16(i), BFloat16(i)
		if got, want := float64(h.Float32()), binary16.value(uint16(i)); !same(got, want) {
			t.Fatalf("Float16 %04x is %v, want %v", i, got, want)
		}
		if got, want := float64(b.Float32()), brain.value(uint16(i)); !same(got, want) {
			t.Fatalf("BFloat16 %04x is %v, want %v", i, got, want)
		}
		// A NaN keeps sign and payload and becomes quiet.
		wantH, wantB := h, b
		if h&0x7fff > 0x7c00 {
			wantH |= 0x200
		}
		if b&0x7fff > 0x7f80 {
			wantB |= 0x40
		}
		if got := NewFloat16(h.Float32()); got != wantH {
			t.Fatalf("Float16 %04x came back as %04x", i, uint16(got))
		}
		if got := NewBFloat16(b.Float32()); got != wantB {
			t.Fatalf("BFloat16 %04x came back as %04x", i, uint16(got))
		}
	}
}

func Example() {
	h := NewFloat16(1.0 / 3)
	fmt.Println(h, NewBFloat16(1.0/3), NewFloat16(65520))
	// Output: 0.33325195 0.33398438 +Inf
}
