package tasks_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// Uneven blocks have the mean that was asked for, and differ by as much; each rank of an exchange
// gives and gets as much as any other.
func TestMakeUneven(t *testing.T) {
	draw := rand.New(rand.NewPCG(34, 1))
	for range 500 {
		ranks := 3 + draw.IntN(30)
		times := 2 << draw.IntN(4)
		for times >= ranks {
			times /= 2
		}
		mean := int64(1 + draw.IntN(1<<draw.IntN(20)))
		for _, coll := range []tasks.Collective{tasks.Alltoall, tasks.Gather, tasks.Allgather, tasks.ReduceScatter} {
			r := tasks.Request{Coll: coll, Type: tasks.Float32, Count: mean}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			r, err := tasks.MakeUneven(r, times, ranks)
			if err == nil {
				err = r.Validate(ranks)
			}
			if err != nil || r.MeanBytes() != 4*mean || r.Uneven() != times || r.Count != mean*int64(times) {
				t.Fatalf("%v of %d ranks, mean %d, %d times: %v: mean %d, %d times, %v", coll, ranks, mean, times, r, r.MeanBytes(), r.Uneven(), err)
			}
			for rank := range r.Matrix.Len() {
				if r.Matrix.Gives(rank) != mean*int64(ranks) || r.Matrix.Gets(rank) != mean*int64(ranks) {
					t.Fatalf("rank %d of %v gives %d and gets %d", rank, r, r.Matrix.Gives(rank), r.Matrix.Gets(rank))
				}
			}
		}
	}
}

// Blocks that are about equal count as equal, and factors are rounded to the nearest power of two.
func TestUneven(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   int
	}{
		{[]int{5, 5, 5, 5}, 0},
		{[]int{8, 6, 6, 6}, 0},   // 8 by 7
		{[]int{12, 4, 4, 4}, 2},  // by 6
		{[]int{17, 4, 4, 3}, 2},  // by 7: 2.4
		{[]int{21, 2, 2, 2}, 4},  // by 7, rounded up
		{[]int{100, 0, 0, 0}, 4}, // all there is
		{[]int{0, 0, 0, 0}, 0},
	} {
		counts, err := tasks.NewCounts(c.counts)
		if err != nil {
			t.Fatal(err)
		}
		r := tasks.Request{Coll: tasks.Gather, Type: tasks.Uint8, Counts: counts, Count: counts.Max()}
		if got := r.Uneven(); got != c.want {
			t.Errorf("%v: %d, want %d", c.counts, got, c.want)
		}
	}
	if got := (tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: 9}).Uneven(); got != 0 {
		t.Errorf("a bcast is uneven by %d", got)
	}
}

func TestUnevenErrors(t *testing.T) {
	for want, f := range map[string]func() (tasks.Request, error){
		"bcast has no blocks that differ; allgather, gather": func() (tasks.Request, error) { return tasks.MakeUneven(tasks.Request{Coll: tasks.Bcast}, 2, 4) },
		"3 times the mean of 8 ranks; allowed are powers of two from 2 on, and below the ranks": func() (tasks.Request, error) {
			return tasks.MakeUneven(tasks.Request{Coll: tasks.Alltoall}, 3, 8)
		},
		"8 times the mean of 8 ranks": func() (tasks.Request, error) {
			return tasks.MakeUneven(tasks.Request{Coll: tasks.Alltoall}, 8, 8)
		},
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// Counts add up to 2^63-1 at most.
func TestNewCountsBound(t *testing.T) {
	if c, err := tasks.NewCounts([]int{1, math.MaxInt - 1}); err != nil || c.Max() != math.MaxInt-1 {
		t.Errorf("largest count %d, %v", c.Max(), err)
	}
	for _, wrong := range [][]int{{2, math.MaxInt - 1}, {-1}} {
		if _, err := tasks.NewCounts(wrong); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

// A cut without passes has one part, others have two.
func TestCutParts(t *testing.T) {
	for passes, want := range []int{1, 2, 2} {
		if got := (tasks.Cut{Passes: int64(passes)}).Parts(); len(got) != want {
			t.Errorf("%d passes: %d parts, want %d", passes, len(got), want)
		}
	}
}
