package planner_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// kinds calls f on goroutine ranks, on processes that share a node, and on processes
// that are alone on theirs.
func kinds(t *testing.T, f func(ctx context.Context, c *planner.Comm) error) {
	t.Run("goroutines", func(t *testing.T) {
		if err := planner.Run(t.Context(), "2", nil, f); err != nil {
			t.Error(err)
		}
	})
	t.Run("sharing processes", func(t *testing.T) { processes(t, 2, 2, nil, f) })
	t.Run("lonely processes", func(t *testing.T) { processes(t, 2, 1, nil, f) })
}

// What can't be had is an error, whatever the size, and takes nothing.
func TestAllocTooMuch(t *testing.T) {
	const page = 4096
	kinds(t, func(_ context.Context, c *planner.Comm) error {
		first, err := planner.Alloc[byte](c, 10*page)
		if err != nil {
			return err
		}
		last, err := planner.Alloc[byte](c, page)
		if err != nil {
			return err
		}
		defer planner.Free(c, last)
		planner.Free(c, first)
		for _, n := range []int{
			1 << 46, 1 << 47, 1 << 50, 1 << 62, math.MaxInt - page, math.MaxInt - page + 1, math.MaxInt - page + 2,
			math.MaxInt - 64, math.MaxInt - 63, math.MaxInt - 62, math.MaxInt,
		} {
			if _, err := planner.Alloc[byte](c, n); !saysTooMuch(err, n) {
				return fmt.Errorf("%d bytes: error %w", n, err)
			}
			if _, err := planner.Alloc[float64](c, n/8); !saysTooMuch(err, n/8*8) {
				return fmt.Errorf("%d elements of 8 bytes: error %w", n/8, err)
			}
		}
		again, err := planner.Alloc[byte](c, 10*page)
		if err != nil {
			return err
		}
		defer planner.Free(c, again)
		for i, b := range again {
			if b != 0 {
				return fmt.Errorf("byte %d of new memory is %d", i, b)
			}
		}
		return nil
	})
}

// saysTooMuch tells whether err says that n bytes are more than there can be.
func saysTooMuch(err error, n int) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, fmt.Sprintf("%d bytes are more than the machine's memory and swap, which are ", n)) ||
		strings.Contains(text, fmt.Sprintf("shared memory of this rank is full: no %d bytes in one piece", n))
}

// Free is true once for each slice that Alloc returned, an empty one too, and for
// nothing else.
func TestFreeKnowsItsSlices(t *testing.T) {
	kinds(t, func(_ context.Context, c *planner.Comm) error {
		if planner.Free(c, []int32{}) || planner.Free(c, []int32(nil)) || planner.Free(c, make([]int32, 3)) {
			return fmt.Errorf("freed what was not allocated")
		}
		for _, n := range []int{0, 1, 5000} {
			var pair [2][]int32
			for i := range pair {
				var err error
				if pair[i], err = planner.Alloc[int32](c, n); err != nil {
					return err
				}
				if pair[i] == nil || len(pair[i]) != n || n == 0 && cap(pair[i]) > 0 {
					return fmt.Errorf("%d elements: got %d with room for %d", n, len(pair[i]), cap(pair[i]))
				}
			}
			if n > 1 && planner.Free(c, pair[0][1:]) {
				return fmt.Errorf("%d elements: freed a part", n)
			}
			for i, s := range pair {
				if !planner.Free(c, s) {
					return fmt.Errorf("%d elements: slice %d could not be freed", n, i)
				}
				if planner.Free(c, s) {
					return fmt.Errorf("%d elements: slice %d was freed twice", n, i)
				}
			}
		}
		return nil
	})
}

// What Alloc returned is given back with the rest of the world, whether it was freed
// before the world was closed or after.
func TestAllocLeavesNothing(t *testing.T) {
	const ranks, n = 2, 1 << 17
	for name, afterwards := range map[string]int{"freed before": 0, "freed after": 3, "some before": 1} {
		t.Run(name, func(t *testing.T) {
			once := func() {
				comms := joinProcesses(t, ranks, ranks, nil)
				kept := make([][][]int64, ranks)
				allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
					for range 3 {
						s, err := planner.Alloc[int64](c, n)
						if err != nil {
							return err
						}
						for i := range s {
							s[i] = int64(i)
						}
						if err := planner.Allreduce(ctx, c, s, s, tasks.Max); err != nil {
							return err
						}
						kept[c.Rank()] = append(kept[c.Rank()], s)
					}
					for _, s := range kept[c.Rank()][afterwards:] {
						planner.Free(c, s)
					}
					return nil
				})
				runtime.GC() // and slots of collectives are freed after the memory is gone
				for r, c := range comms {
					for _, s := range kept[r][:afterwards] {
						if s[0] != 0 || s[n-1] != n-1 {
							t.Fatalf("rank %d: after Close the slice is %d … %d", r, s[0], s[n-1])
						}
						if !planner.Free(c, s) {
							t.Fatalf("rank %d could not free after Close", r)
						}
					}
				}
			}
			once()
			leavesNothing(t, 10, once)
		})
	}
}

// A slice that is never freed stays, with what is in it, when the world is closed and
// other worlds come and go.
func TestAllocStays(t *testing.T) {
	comms := joinProcesses(t, 2, 2, nil)
	s, err := planner.Alloc[int32](comms[0], 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s {
		s[i] = int32(i)
	}
	closeAll(t, comms)
	processes(t, 2, 2, nil, sum)
	runtime.GC()
	for i, got := range s {
		if got != int32(i) {
			t.Fatalf("element %d is %d", i, got)
		}
	}
	if !planner.Free(comms[0], s) { // for the tests that count
		t.Error("could not be freed")
	}
}
