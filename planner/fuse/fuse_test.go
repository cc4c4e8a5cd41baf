package fuse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/fuse"
	"github.com/tierflow/tierflow/tasks"
)

// run is planner.Run with a deadline.
func run(t *testing.T, topo string, f func(ctx context.Context, c *planner.Comm) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return planner.Run(ctx, topo, nil, f)
}

// succeed is run, which may not fail.
func succeed(t *testing.T, topo string, f func(ctx context.Context, c *planner.Comm) error) {
	t.Helper()
	if err := run(t, topo, f); err != nil {
		t.Error(err)
	}
}

// value is element k of tensor i on a rank in a step.
func value(step, rank, i, k int) int64 { return int64(step*1000 + (rank+1)*(i+1)*7 + k%13) }

// fill writes a rank's tensor.
func fill(view []int64, step, rank, i int) {
	for k := range view {
		view[k] = value(step, rank, i, k)
	}
}

// check is an error unless a view is the sum over ranks.
func check(view []int64, step, ranks, i int) error {
	for k, got := range view {
		want := int64(0)
		for r := range ranks {
			want += value(step, r, i, k)
		}
		if got != want {
			return fmt.Errorf("step %d, tensor %d, element %d is %d, want %d", step, i, k, got, want)
		}
	}
	return nil
}

// Tensors of any sizes, ready in any order, in buckets of any size, are summed up.
func TestSums(t *testing.T) {
	for seed := range uint64(12) {
		draw := rand.New(rand.NewPCG(seed, 5))
		sizes := make([]int, 1+draw.IntN(30))
		for i := range sizes {
			sizes[i] = int(1) << draw.IntN(13)
			if draw.IntN(5) == 0 {
				sizes[i] = draw.IntN(3)
			}
		}
		o := &fuse.Options{Bucket: int64(64 << draw.IntN(9)), Op: tasks.Sum}
		if draw.IntN(2) == 0 {
			o.Ready = draw.Perm(len(sizes))
		}
		topo := []string{"1x1", "1x3", "2x2", "a:3,b:1", "4x1"}[draw.IntN(5)]
		err := run(t, topo, func(ctx context.Context, c *planner.Comm) error {
			b, err := fuse.New[int64](c, sizes, o)
			if err != nil {
				return err
			}
			defer b.Free()
			mine := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
			for step := range 4 {
				for _, i := range mine.Perm(len(sizes)) { // another order on each rank
					fill(b.View(i), step, c.Rank(), i)
					if err := b.Ready(ctx, i); err != nil {
						return err
					}
				}
				if step%2 == 0 {
					for _, i := range mine.Perm(len(sizes)) {
						if err := b.WaitFor(ctx, i); err != nil {
							return err
						}
						if !b.Done(i) {
							return fmt.Errorf("tensor %d was waited for, and isn't done", i)
						}
						if err := check(b.View(i), step, c.Size(), i); err != nil {
							return err
						}
					}
				}
				if err := b.Wait(ctx); err != nil {
					return err
				}
				for i := range sizes {
					if err := check(b.View(i), step, c.Size(), i); err != nil {
						return err
					}
				}
				if step == 1 {
					if err := b.Learn(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("seed %d, %s, %d tensors, %+v: %v", seed, topo, len(sizes), o, err)
		}
	}
}

// Tensors may become ready on several goroutines, before and while one waits.
func TestGoroutines(t *testing.T) {
	sizes := slices.Repeat([]int{100, 3000, 5}, 8)
	succeed(t, "2x2", func(ctx context.Context, c *planner.Comm) error {
		b, err := fuse.New[int64](c, sizes, &fuse.Options{Bucket: 4096, Op: tasks.Sum})
		if err != nil {
			return err
		}
		defer b.Free()
		for step := range 5 {
			var all sync.WaitGroup
			errs := make([]error, len(sizes))
			for g := range 4 {
				all.Go(func() {
					for i := g; i < len(sizes); i += 4 {
						fill(b.View(i), step, c.Rank(), i)
						errs[i] = b.Ready(ctx, i)
					}
				})
			}
			err := b.Wait(ctx)
			all.Wait()
			if err := errors.Join(append(errs, err)...); err != nil {
				return err
			}
			for i := range sizes {
				if err := check(b.View(i), step, c.Size(), i); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Foreign memory is put and got; the default is an average; a skipped tensor counts as zeros.
func TestPutGetSkip(t *testing.T) {
	succeed(t, "1x4", func(ctx context.Context, c *planner.Comm) error {
		b, err := fuse.New[float64](c, []int{3, 2}, nil)
		if err != nil {
			return err
		}
		defer b.Free()
		r := float64(c.Rank())
		err = errors.Join(b.Put(0, []float64{r, 2 * r, 1}), b.Ready(ctx, 0))
		if c.Rank() == 2 {
			err = errors.Join(err, b.Put(1, []float64{4, 8}), b.Ready(ctx, 1))
		} else {
			copy(b.View(1), []float64{77, 77})
			err = errors.Join(err, b.Skip(ctx, 1))
		}
		first, second := make([]float64, 3), make([]float64, 2)
		if err = errors.Join(err, b.Get(ctx, 0, first), b.Get(ctx, 1, second), b.Wait(ctx)); err != nil {
			return err
		}
		if !slices.Equal(first, []float64{1.5, 3, 1}) || !slices.Equal(second, []float64{1, 2}) {
			return fmt.Errorf("averages are %v and %v", first, second)
		}
		return nil
	})
}

// While buckets are held nothing starts, and gradients accumulate.
func TestHold(t *testing.T) {
	succeed(t, "1x2", func(ctx context.Context, c *planner.Comm) error {
		b, err := fuse.New[int64](c, []int{10}, &fuse.Options{Op: tasks.Sum})
		if err != nil {
			return err
		}
		defer b.Free()
		b.Hold()
		for part := range 3 {
			if part == 2 {
				b.Release()
			}
			for k := range b.View(0) {
				b.View(0)[k] += int64(c.Rank() + 1)
			}
			if err := b.Ready(ctx, 0); err != nil {
				return err
			}
		}
		if err := b.Wait(ctx); err != nil {
			return err
		}
		if b.View(0)[9] != 9 {
			return fmt.Errorf("%d, want 9", b.View(0)[9])
		}
		return nil
	})
}

// A tensor that never becomes ready is named, on all ranks.
func TestNeverReady(t *testing.T) {
	const want = "rank 2 waits for tensor 3 1, which nobody made ready"
	err := run(t, "1x3", func(ctx context.Context, c *planner.Comm) error {
		o := &fuse.Options{Bucket: 64, StallAfter: time.Minute}
		if c.Rank() == 2 {
			o.StallAfter = 20 * time.Millisecond
		}
		b, err := fuse.New[float32](c, []int{30, 40, 50, 60}, o)
		if err != nil && strings.Contains(err.Error(), want) {
			return nil // this rank came late
		}
		if err != nil {
			return err
		}
		defer b.Free()
		for i := range 4 {
			if c.Rank() == 2 && i%2 == 1 {
				continue
			}
			if err := b.Ready(ctx, i); err != nil {
				break // the failure came first
			}
		}
		if err := b.Wait(ctx); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil && !strings.HasPrefix(err.Error(), "close") {
		t.Error(err)
	}
}

// Ranks whose sizes, orders or buckets differ are told so, with what each has.
func TestRanksDiffer(t *testing.T) {
	for _, test := range []struct {
		name   string
		sizes  [2][]int
		o      [2]fuse.Options
		expect []string
	}{
		{name: "sizes", sizes: [2][]int{{64, 128}, {128, 64}}},
		{name: "order", sizes: [2][]int{{64, 64}, {64, 64}}, o: [2]fuse.Options{{Ready: []int{0, 1}}, {Ready: []int{1, 0}}}},
		{name: "buckets", sizes: [2][]int{{5000, 64}, {5000, 64}}, o: [2]fuse.Options{{Bucket: 4096}, {Bucket: 8192}}},
	} {
		var mu sync.Mutex
		var texts []string
		_ = run(t, "1x2", func(ctx context.Context, c *planner.Comm) error {
			b, err := fuse.New[float32](c, test.sizes[c.Rank()], &test.o[c.Rank()])
			if err != nil {
				return err
			}
			for i := range test.sizes[0] {
				if err = b.Ready(ctx, i); err != nil {
					break
				}
			}
			if err == nil {
				err = b.Wait(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			if !errors.Is(err, planner.ErrMismatch) {
				t.Errorf("%s: rank %d: %v", test.name, c.Rank(), err)
				return err
			}
			texts = append(texts, err.Error())
			return err
		})
		for _, text := range texts {
			if strings.Count(text, "sizes and order") < 2 {
				t.Errorf("%s: %s", test.name, text)
			}
		}
		if len(texts) != 2 {
			t.Errorf("%s: %d ranks were told: %q", test.name, len(texts), texts)
		}
	}
}

// A step allocates nothing.
func TestAllocatesNothing(t *testing.T) {
	sizes := []int{1000, 64, 70000, 3, 5000}
	succeed(t, "1x2", func(ctx context.Context, c *planner.Comm) error {
		b, err := fuse.New[float32](c, sizes, &fuse.Options{Bucket: 16 << 10})
		if err != nil {
			return err
		}
		defer b.Free()
		var failed error
		step := func() {
			for i := len(sizes) - 1; i >= 0 && failed == nil; i-- {
				failed = b.Ready(ctx, i)
			}
			if failed == nil {
				failed = b.Wait(ctx)
			}
		}
		for range 20 {
			step()
		}
		const steps = 50
		var n float64
		if c.Rank() == 0 {
			n = testing.AllocsPerRun(steps, step)
		} else {
			for range steps + 1 {
				step()
			}
		}
		// Of both ranks: goroutines that the runtime has none in reserve for are not of the step.
		if n >= 1 {
			return fmt.Errorf("%v allocations a step", n)
		}
		return failed
	})
}

// What can't be is one clear error.
func TestMisuse(t *testing.T) {
	succeed(t, "1x1", func(ctx context.Context, c *planner.Comm) error {
		for _, bad := range []struct {
			sizes []int
			o     fuse.Options
			want  string
		}{
			{[]int{-1}, fuse.Options{}, "tensor 0 has -1 elements"},
			{[]int{1, 2}, fuse.Options{Ready: []int{0}}, "an order of 1 tensors, but there are 2"},
			{[]int{1, 2}, fuse.Options{Ready: []int{1, 1}}, "tensor 1 in the order twice"},
			{[]int{1}, fuse.Options{Bucket: -5}, "buckets of -5 bytes"},
		} {
			if _, err := fuse.New[float32](c, bad.sizes, &bad.o); err == nil || !strings.Contains(err.Error(), bad.want) {
				return fmt.Errorf("%v: want %q", err, bad.want)
			}
		}
		b, err := fuse.New[float32](c, []int{4, 4}, nil)
		if err != nil {
			return err
		}
		if _, err := fuse.New[float32](c, []int{4}, nil); err == nil || !strings.Contains(err.Error(), "has buckets already") {
			return fmt.Errorf("second buckets: %v", err)
		}
		for _, test := range []struct {
			err  error
			want string
		}{
			{b.Ready(ctx, 2), "tensor 2; there are 0 to 1"},
			{b.Put(0, make([]float32, 3)), "Put of 3 elements; tensor 0 has 4"},
			{errors.Join(b.Ready(ctx, 1), b.Ready(ctx, 1)), "tensor 1 is ready twice"},
			{b.Learn(ctx), "within a step"},
		} {
			if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
				return fmt.Errorf("%v: want %q", test.err, test.want)
			}
		}
		if err := errors.Join(b.Ready(ctx, 0), b.Wait(ctx)); err != nil {
			return err
		}
		b.Free()
		again, err := fuse.New[float32](c, []int{4}, nil)
		if err == nil {
			again.Free()
		}
		return err
	})
}

// Explain names buckets and warns of one processor, and so does the log.
func TestExplain(t *testing.T) {
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	var log bytes.Buffer
	succeed(t, "1x2", func(_ context.Context, c *planner.Comm) error {
		b, err := fuse.New[float32](c, []int{4, 4, 400}, &fuse.Options{Bucket: 1024, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			return err
		}
		defer b.Free()
		text := b.Explain()
		for _, want := range []string{"3 tensors, 1728B in 4 buckets", "bucket 0: 256B, tensors [2]", "as asked for", "tensors [1 0]", "plan:", "GOMAXPROCS=1"} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("no %q in:\n%s", want, text)
			}
		}
		return nil
	})
}

// Where a machine is known, latency is a tenth of a bucket's time.
func TestBucketFromPrices(t *testing.T) {
	data, err := machine.Assumed().Format()
	if err != nil {
		t.Fatal(err)
	}
	comms, err := planner.Local("4x1", &planner.Options{Machine: "machine", Files: fstest.MapFS{"machine": {Data: data}}})
	if err != nil {
		t.Fatal(err)
	}
	err = planner.Each(t.Context(), comms, func(_ context.Context, c *planner.Comm) error {
		b, err := fuse.New[float32](c, slices.Repeat([]int{1000}, 2000), nil)
		if err != nil {
			return err
		}
		defer b.Free()
		text := b.Explain()
		if !strings.Contains(text, "ns a byte: latency is a tenth") {
			return errors.New(text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Each element of each tensor is in one bucket, small tensors in one each; buckets are no larger
// than asked for, and the ends smaller.
func TestLayout(t *testing.T) {
	for seed := range uint64(300) {
		draw := rand.New(rand.NewPCG(seed, 9))
		sizes := make([]int, 1+draw.IntN(40))
		for i := range sizes {
			sizes[i] = draw.IntN(1 << draw.IntN(12))
		}
		bucket, order := 256<<draw.IntN(6), draw.Perm(len(sizes))
		buckets, tensors, parts, err := fuse.Layout(sizes, order, int64(bucket), 4)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for k, b := range buckets {
			if b[0] != at || b[1] <= b[0] || 4*(b[1]-b[0]) > bucket {
				t.Fatalf("seed %d: bucket %d of %d bytes is %v, after %d", seed, k, bucket, b, at)
			}
			at = b[1]
		}
		if n := len(buckets); n > 0 && 4*buckets[0][1] > bucket/4 && sizes[parts[0][0]]*4 > bucket && len(parts[0]) > 1 {
			t.Fatalf("seed %d: the first bucket is %v of %d bytes", seed, buckets[0], bucket)
		}
		at = 0
		for _, i := range order {
			x := tensors[i]
			if x[0] < at || x[0]%16 != 0 || x[1]-x[0] != sizes[i] {
				t.Fatalf("seed %d: tensor %d of %d is %v, after %d", seed, i, sizes[i], x, at)
			}
			at = x[1]
			in, covered := 0, 0
			for k, b := range buckets {
				if n := min(b[1], x[1]) - max(b[0], x[0]); n > 0 {
					in, covered = in+1, covered+n
					if !slices.Contains(parts[k], i) {
						t.Fatalf("seed %d: bucket %d lacks tensor %d", seed, k, i)
					}
				} else if slices.Contains(parts[k], i) {
					t.Fatalf("seed %d: bucket %d has tensor %d", seed, k, i)
				}
			}
			if covered != sizes[i] || 4*sizes[i] <= bucket && in > 1 {
				t.Fatalf("seed %d: tensor %d of %d is in %d buckets with %d elements", seed, i, sizes[i], in, covered)
			}
		}
	}
}
