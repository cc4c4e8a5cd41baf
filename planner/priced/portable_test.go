package priced

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The portable functions are close to those of package math, and have known bits on any processor.
func TestPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		y := 20 * (rng.Float64() - 0.5)
		x := math.Exp(y)
		if got, want := exp(y), x; math.Abs(got/want-1) > 1e-14 {
			t.Fatalf("exp %v: %v, want %v", y, got, want)
		}
		if got, want := log(x), math.Log(x); math.Abs(got-want) > 1e-14*max(1, math.Abs(want)) {
			t.Fatalf("log %v: %v, want %v", x, got, want)
		}
	}
	sum := uint64(0)
	for k := 1; k < 1000; k++ {
		sum = 31*sum + math.Float64bits(log(float64(k)/7)) + math.Float64bits(exp(float64(k-500)/99))
	}
	if want := uint64(0x8d92ea74df377f73); sum != want {
		t.Errorf("bits %#x, want %#x", sum, want)
	}
}
