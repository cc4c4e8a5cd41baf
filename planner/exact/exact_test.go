package exact_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/exact"
)

// run is planner.Run with a deadline.
func run(t *testing.T, topo string, o *planner.Options, f func(ctx context.Context, c *planner.Comm) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return planner.Run(ctx, topo, o, f)
}

// contribution i has elements with exponents from -120 to 120, some of them zero.
func contribution[T exact.Float](i, n int) []T {
	draw := rand.New(rand.NewPCG(7, uint64(i)))
	x := make([]T, n)
	for k := range x {
		spread := float64(k * 221 / n) // each block has a size of its own, and a range around it
		x[k] = T((draw.Float64()*2 - 1) * math.Exp2(spread-119+float64(draw.IntN(20))))
		if draw.IntN(50) == 0 {
			x[k] = 0
		}
	}
	return x
}

// sumOf adds up so many contributions, of which each rank has every so-maniest, and returns what
// rank 0 finds. All ranks must find the same.
func sumOf[T exact.Float](t *testing.T, topo string, o *planner.Options, n, contributions int, how *exact.Options, make func(i, n int) []T) []T {
	t.Helper()
	var found []T
	err := run(t, topo, o, func(ctx context.Context, c *planner.Comm) error {
		s, err := exact.New[T](ctx, c, n, contributions, how)
		if err != nil {
			return err
		}
		defer s.Free()
		var mine [][]T
		for i := c.Rank(); i < contributions; i += c.Size() {
			mine = append(mine, make(i, n))
		}
		dst := slices.Repeat([]T{-7}, n)
		if err := s.Run(ctx, mine, dst); err != nil {
			return err
		}
		if c.Rank() == 0 {
			found = slices.Clone(dst)
		}
		if err := planner.Bcast(ctx, c, dst, 0); err != nil {
			return err
		}
		again := slices.Repeat([]T{-7}, n)
		slices.Reverse(mine) // and in another order
		if err := s.Run(ctx, mine, again); err != nil {
			return err
		}
		if digest(again) != digest(dst) {
			return fmt.Errorf("rank %d has another sum", c.Rank())
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s, %d contributions: %v", topo, contributions, err)
	}
	return found
}

func digest[T exact.Float](x []T) string {
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, x)
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// One digest over layouts, plans and numbers of ranks.
func TestSameBits(t *testing.T) {
	const n, contributions = 3000, 24
	layouts := []string{"1x1", "1x2", "1x3", "2x2", "2x2/rr", "4x1", "3x2", "8x1", "1x8", "a:3,b:1,c:2", "2x2x2", "5x1", "7x1"}
	plans := []string{"", "shape=flat", "shape=han,fs=4KiB,w=2", "shape=rsag,i=adapt/ring", "shape=lanes", "shape=flat-rsag,i=nbc/halving", "order=tree", "shape=flat-ar,i=nbc/recdoubling"}
	want32 := digest(sumOf(t, "1x1", nil, n, contributions, nil, contribution[float32]))
	want64 := digest(sumOf(t, "1x1", nil, n, contributions, nil, contribution[float64]))
	runs, refused := 0, 0
	for _, topo := range layouts {
		for _, plan := range plans {
			o := &planner.Options{Plan: plan}
			if err := run(t, topo, o, func(_ context.Context, c *planner.Comm) error {
				_, err := exact.New[float32](t.Context(), c, n, contributions, nil)
				return err
			}); err != nil {
				refused++ // a plan that isn't for this layout
				continue
			}
			runs++
			if got := digest(sumOf(t, topo, o, n, contributions, nil, contribution[float32])); got != want32 {
				t.Errorf("float32 on %s under %q: %s, want %s", topo, plan, got, want32)
			}
			if plan != "" {
				continue
			}
			if got := digest(sumOf(t, topo, o, n, contributions, nil, contribution[float64])); got != want64 {
				t.Errorf("float64 on %s under %q: %s, want %s", topo, plan, got, want64)
			}
		}
	}
	t.Logf("%d layouts and plans; %d pairs don't go together", runs, refused)
	if runs < 60 {
		t.Errorf("only %d layouts and plans", runs)
	}
}

// Contributions that ranks add as floats first have sums that differ: TestSameBits could fail.
func TestFloatsAddedFirstDiffer(t *testing.T) {
	free := func(topo string) string {
		var found string
		err := run(t, topo, nil, func(ctx context.Context, c *planner.Comm) error {
			x, err := make([]float32, 6000), error(nil)
			for i := c.Rank(); i < 24; i += c.Size() {
				for k, v := range contribution[float32](i, len(x)) {
					x[k] += v
				}
			}
			s, err := exact.New[float32](ctx, c, len(x), c.Size(), nil)
			if err != nil {
				return err
			}
			defer s.Free()
			if err := s.Run(ctx, [][]float32{x}, x); err != nil {
				return err
			}
			if c.Rank() == 0 {
				found = digest(x)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if free("1x2") == free("1x3") {
		t.Error("contributions that are added as floats first have the same sum on 2 and 3 ranks")
	}
}

// Each element is as near to the true sum as the package promises, for any sizes, blocks and
// numbers of contributions, down to subnormals.
func TestErrorBound(t *testing.T) {
	for _, test := range []struct{ n, contributions, block int }{
		{1, 1, 0}, {63, 2, 0}, {64, 3, 0}, {65, 24, 0}, {500, 8, 1}, {1000, 24, 0}, {200, 1000, 100}, {300, 5, 7},
	} {
		for _, low := range []bool{false, true} {
			of32, of64 := contribution[float32], contribution[float64]
			if low {
				of32 = func(i, n int) []float32 { return scaled(contribution[float32](i, n), 0x1p-130) }
				of64 = func(i, n int) []float64 { return scaled(contribution[float64](i, n), 0x1p-1040) }
			}
			how := &exact.Options{Block: test.block}
			bound(t, sumOf(t, "1x3", nil, test.n, test.contributions, how, of32), test.contributions, test.block, 30, 24, -149, -125, of32)
			bound(t, sumOf(t, "1x3", nil, test.n, test.contributions, how, of64), test.contributions, test.block, 62, 53, -1074, -1021, of64)
		}
	}
}

func scaled[T exact.Float](x []T, by T) []T {
	for i := range x {
		x[i] *= by
	}
	return x
}

// bound checks sums of contributions with math/big. Floats have so many bits and such a smallest
// exponent; blocks' exponents are at least least.
func bound[T exact.Float](t *testing.T, got []T, contributions, block, carried, mantissa, smallest, least int, of func(i, n int) []T) {
	t.Helper()
	if block == 0 {
		block = exact.DefaultBlock
	}
	n := len(got)
	all := make([][]T, contributions)
	for i := range all {
		all[i] = of(i, n)
	}
	for from := 0; from < n; from += block {
		end := min(from+block, n)
		e := least - 1 // of subnormals
		for _, x := range all {
			for _, v := range x[from:end] {
				if _, exp := math.Frexp(float64(v)); v != 0 {
					e = max(e, exp)
				}
			}
		}
		h := 0
		for 1<<h < contributions {
			h++
		}
		for k := from; k < end; k++ {
			sum := new(big.Float).SetPrec(2200)
			for _, x := range all {
				sum.Add(sum, new(big.Float).SetFloat64(float64(x[k])))
			}
			off := new(big.Float).SetPrec(2200).Sub(sum, new(big.Float).SetFloat64(float64(got[k])))
			_, exp := math.Frexp(float64(got[k]))
			ulp := max(exp-mantissa, smallest)
			allowed := new(big.Float).SetMantExp(big.NewFloat(float64(contributions)), e+h-carried-1)
			allowed.Add(allowed, new(big.Float).SetMantExp(big.NewFloat(0.5), ulp))
			if off.Abs(off).Cmp(allowed) > 0 {
				t.Fatalf("element %d of %d, %d contributions, blocks of %d: %v, off by %v; allowed are %v", k, n, contributions, block, got[k], off, allowed)
			}
		}
	}
}

// Carried sums become the nearest float64, ties to even, subnormals too.
func TestScale(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		q := int64(draw.Uint64()) >> (1 + draw.IntN(60))
		k := draw.IntN(2060) - 1084
		if draw.IntN(2) == 0 {
			k = draw.IntN(24) - 1084 // subnormals
		}
		want, _ := new(big.Float).SetMantExp(new(big.Float).SetInt64(q), k).Float64()
		if got := exact.Scale64(q, k); got != want {
			t.Fatalf("%d·2^%d is %b, want %b", q, k, got, want)
		}
	}
}

// NaN and infinities stay in their elements, and do no harm to others of their blocks.
func TestSpecial(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	in := [][]float64{
		{1, inf, 3, -inf, nan, inf, math.Copysign(0, -1), math.MaxFloat64},
		{2, 5, 6, -inf, 7, -inf, math.Copysign(0, -1), math.MaxFloat64},
		{4, 8, -9, 1, 9, 2, math.Copysign(0, -1), math.MaxFloat64},
	}
	want := []float64{7, inf, 0, -inf, nan, nan, 0, inf}
	check := func(got []float64) error {
		for i := range want {
			// The sums are small beside the block's largest element: only special ones and the last are told.
			if i == 0 || i == 2 {
				continue
			}
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
				return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
			}
		}
		return nil
	}
	for _, topo := range []string{"1x1", "1x2", "3x1"} {
		for _, block := range []int{1, 64} {
			got := sumOf(t, topo, nil, len(want), 3, &exact.Options{Block: block}, func(i, _ int) []float64 { return in[i] })
			if err := check(got); err != nil {
				t.Errorf("%s, blocks of %d: %v", topo, block, err)
			}
			if block == 1 && (got[0] != 7 || got[2] != 0) {
				t.Errorf("%s: finite elements are %v, %v", topo, got[0], got[2])
			}
			narrow := sumOf(t, topo, nil, len(want), 3, &exact.Options{Block: block}, func(i, _ int) []float32 {
				x := make([]float32, len(in[i]))
				for k, v := range in[i] {
					x[k] = float32(min(v, math.MaxFloat32))
					if math.IsInf(v, 1) {
						x[k] = float32(v)
					}
				}
				return x
			})
			wide := make([]float64, len(narrow))
			for k, v := range narrow {
				wide[k] = float64(v)
			}
			if err := check(wide); err != nil {
				t.Errorf("float32 on %s, blocks of %d: %v", topo, block, err)
			}
		}
	}
}

// An average is divided once, by the contributions that there were.
func TestAverage(t *testing.T) {
	got := sumOf(t, "1x2", nil, 3, 3, &exact.Options{Average: true}, func(i, _ int) []float32 {
		return []float32{float32(i), 1, 3}
	})
	if !slices.Equal(got, []float32{1, 1, 3}) {
		t.Error(got)
	}
}

func TestAllreduce(t *testing.T) {
	err := run(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		x := []float64{float64(c.Rank()), 0x1p-40}
		if err := exact.Allreduce(ctx, c, x, x); err != nil {
			return err
		}
		if x[0] != 6 || x[1] != 0x1p-38 {
			return fmt.Errorf("the sums are %v", x)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// What can't be is one clear error, on all ranks where all must know, and the next round works.
func TestMisuse(t *testing.T) {
	const n = 100
	x, large := slices.Repeat([]float32{1}, n), slices.Repeat([]float32{64}, n)
	type use = func(ctx context.Context, c *planner.Comm, s *exact.Sum[float32]) error
	times := func(k int) use {
		return func(ctx context.Context, c *planner.Comm, s *exact.Sum[float32]) error {
			return s.Run(ctx, slices.Repeat([][]float32{x}, k), slices.Clone(x))
		}
	}
	for _, test := range []struct {
		name string
		use  use
		want string
	}{
		{"too many", times(3), "6 contributions; it was made for 4"},
		{"none", times(0), "no rank has added"},
		{"short", func(_ context.Context, _ *planner.Comm, s *exact.Sum[float32]) error { return s.Look(x[1:]) }, "Look of 99 elements; it was made for 100"},
		{"early", func(_ context.Context, _ *planner.Comm, s *exact.Sum[float32]) error { return s.Add(x) }, "Add before Agree"},
		{"above", func(ctx context.Context, c *planner.Comm, s *exact.Sum[float32]) error {
			err := errors.Join(s.Look(x), s.Agree(ctx))
			if c.Rank() == 1 {
				err = errors.Join(err, s.Add(large))
			} else {
				err = errors.Join(err, s.Add(x))
			}
			return errors.Join(err, s.Sum(ctx, slices.Clone(x)))
		}, "1 contributions were added that Look had not seen"},
		{"NaN above", func(ctx context.Context, c *planner.Comm, s *exact.Sum[float32]) error {
			bad := slices.Clone(x)
			bad[7] = float32(math.NaN())
			return errors.Join(s.Look(x), s.Agree(ctx), s.Add(bad), s.Sum(ctx, slices.Clone(x)))
		}, "2 contributions were added that Look had not seen"},
	} {
		err := run(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
			s, err := exact.New[float32](ctx, c, n, 4, nil)
			if err != nil {
				return err
			}
			defer s.Free()
			if err := test.use(ctx, c, s); err == nil || !strings.Contains(err.Error(), test.want) {
				return fmt.Errorf("rank %d: %v, want %q", c.Rank(), err, test.want)
			}
			return times(2)(ctx, c, s)
		})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for _, bad := range []struct{ n, contributions, block int }{{-1, 1, 0}, {1, 0, 0}, {1, exact.MaxContributions + 1, 0}, {1, 1, -1}} {
		err := run(t, "1x1", nil, func(_ context.Context, c *planner.Comm) error {
			_, err := exact.New[float32](t.Context(), c, bad.n, bad.contributions, &exact.Options{Block: bad.block})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "allowed are") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// Ranks that mean different sums are told so, all of them.
func TestRanksDiffer(t *testing.T) {
	err := run(t, "1x3", nil, func(ctx context.Context, c *planner.Comm) error {
		s, err := exact.New[float64](ctx, c, 10, 3+c.Rank()/2, nil)
		if err != nil {
			return err
		}
		if err := s.Agree(ctx); err == nil || !strings.Contains(err.Error(), "ranks differ in what they sum; this one has 10 elements") {
			return fmt.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAllocatesNothing(t *testing.T) {
	err := run(t, "1x1", nil, func(ctx context.Context, c *planner.Comm) error {
		x := [][]float32{contribution[float32](1, 5000)}
		s, err := exact.New[float32](ctx, c, 5000, 1, nil)
		if err != nil {
			return err
		}
		defer s.Free()
		dst := make([]float32, 5000)
		var failed error
		if n := testing.AllocsPerRun(10, func() { failed = errors.Join(failed, s.Run(ctx, x, dst)) }); n != 0 {
			return fmt.Errorf("%v allocations", n)
		}
		return failed
	})
	if err != nil {
		t.Error(err)
	}
}
