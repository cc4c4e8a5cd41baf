package derived_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/costs/derived"
)

// experiments are those of one line, ten sizes as the paper has them.
func experiments(l derived.Line) (rows []derived.Row) {
	for bytes := 8192.0; bytes <= 4<<20; bytes *= 2 {
		c := derived.Coeff{Alpha: bytes/8192 + 14, Beta: bytes + 14*1000}
		rows = append(rows, derived.Row{Coeff: c, NS: l.NS(c)})
	}
	return rows
}

func off(a, b float64) float64 { return math.Abs(a-b) / b }

func TestFitExact(t *testing.T) {
	want := derived.Line{Alpha: 50e3, Beta: 0.8}
	got, err := derived.Fit(experiments(want), 0)
	if err != nil || off(got.Alpha, want.Alpha) > 1e-9 || off(got.Beta, want.Beta) > 1e-9 {
		t.Errorf("fitted %+v, %v; want %+v", got, err, want)
	}
}

// A fifth of the experiments may be far off: least squares would follow them.
func TestFitOutliers(t *testing.T) {
	want := derived.Line{Alpha: 50e3, Beta: 8}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := experiments(want)
		for i, k := range rng.Perm(len(rows)) {
			rows[k].NS *= 1 + 0.001*rng.NormFloat64()
			if i < len(rows)/5 {
				rows[k].NS *= 1.5 + rng.Float64()
			}
		}
		got, err := derived.Fit(rows, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range experiments(want) {
			if e := off(got.NS(r.Coeff), r.NS); e > 0.02 {
				t.Errorf("seed %d: %v ns for %v messages, off by %.1f%%", seed, got.NS(r.Coeff), r.Alpha, 100*e)
			}
		}
	}
}

// No cost is below nothing, though the best line would have it so.
func TestFitIsNotNegative(t *testing.T) {
	rows := []derived.Row{
		{Coeff: derived.Coeff{Alpha: 1, Beta: 100}, NS: 50},
		{Coeff: derived.Coeff{Alpha: 1, Beta: 200}, NS: 150},
	}
	if l, err := derived.Fit(rows, 0); err != nil || l.Alpha != 0 || !(l.Beta > 0) {
		t.Errorf("a steep line: %+v, %v", l, err)
	}
	rows[0].NS, rows[1].NS = 150, 50
	if l, err := derived.Fit(rows, 0); err != nil || l.Beta != 0 || !(l.Alpha > 0) {
		t.Errorf("a falling line: %+v, %v", l, err)
	}
}

func TestFitRefuses(t *testing.T) {
	one := derived.Row{Coeff: derived.Coeff{Alpha: 1, Beta: 100}, NS: 50}
	half := derived.Row{Coeff: derived.Coeff{Alpha: 2, Beta: 200}, NS: 90}
	combined := derived.Row{Coeff: derived.Coeff{Alpha: 1, Beta: 100, Combined: 100}, NS: 50}
	for name, rows := range map[string][]derived.Row{
		"none": nil, "one": {one}, "one length": {one, half},
		"no time": {one, {Coeff: derived.Coeff{Alpha: 1, Beta: 200}}}, "no messages": {one, {NS: 1}},
		"not a number":        {one, {Coeff: derived.Coeff{Alpha: 1, Beta: math.NaN()}, NS: 1}},
		"endless":             {one, {Coeff: derived.Coeff{Alpha: 1, Beta: 200}, NS: math.Inf(1)}},
		"all of it combining": {one, combined},
	} {
		if l, err := derived.Fit(rows, 1); err == nil {
			t.Errorf("%s: no error, but %+v", name, l)
		}
	}
}

func TestGamma(t *testing.T) {
	g, err := derived.NewGamma([]float64{200, 240, 230, 320})
	if err != nil {
		t.Fatal(err)
	}
	for ranks, want := range map[int]float64{-1: 1, 1: 1, 2: 1, 3: 1.2, 4: 1.2, 5: 1.6} {
		if got := g.Of(ranks); got != want {
			t.Errorf("γ(%d) = %v, want %v", ranks, got, want)
		}
	}
	// The line through (2, 1), (3, 1.2), (4, 1.2), (5, 1.6).
	if got, want := g.Of(10), 1.25+0.18*(10-3.5); math.Abs(got-want) > 1e-9 {
		t.Errorf("γ(10) = %v, want %v", got, want)
	}
	for _, bad := range [][]float64{nil, {0}, {1, -1}, {1, math.NaN()}, {math.Inf(1)}} {
		if _, err := derived.NewGamma(bad); err == nil {
			t.Errorf("times %v make a γ", bad)
		}
	}
	if one, err := derived.NewGamma([]float64{7}); err != nil || one.Of(9) != 1 {
		t.Errorf("γ(9) of one time is %v, %v; nothing says that it grows", one.Of(9), err)
	}
}
