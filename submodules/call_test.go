package submodules_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// TestSeats: places are counted from the leader on, whoever leads, and each rank finds the
// others at theirs.
func TestSeats(t *testing.T) {
	ranks := []levels.Rank{3, 4, 8, 9, 20}
	for leader := range ranks {
		group := &levels.Group{Ranks: ranks, Leader: leader}
		seen := map[int]bool{}
		for me := range ranks {
			c := &submodules.Call{Task: tasks.Task{Group: group}, Me: me}
			seat := c.Seat()
			if c.RankAt(seat) != ranks[me] || c.RankAt(0) != ranks[leader] || seat < 0 || seat >= len(ranks) || seen[seat] {
				t.Errorf("led by %d: rank %d has place %d, where rank %d is", ranks[leader], ranks[me], seat, c.RankAt(seat))
			}
			seen[seat] = true
			if next := (seat + 1) % len(ranks); c.RankAt(next) != ranks[c.Member(me+1)] {
				t.Errorf("led by %d: behind rank %d sits rank %d", ranks[leader], ranks[me], c.RankAt(next))
			}
			if c.IsLast() != (me == 4) {
				t.Errorf("rank %d is the last one: %t", ranks[me], c.IsLast())
			}
		}
	}
}

func TestMember(t *testing.T) {
	c := &submodules.Call{Task: tasks.Task{Group: &levels.Group{Ranks: make([]levels.Rank, 3)}}}
	for i, want := range map[int]int{-7: 2, -3: 0, -1: 2, 0: 0, 2: 2, 3: 0, 11: 2} {
		if got := c.Member(i); got != want {
			t.Errorf("member %d of 3 is %d, want %d", i, got, want)
		}
	}
}

// TestWindow compares a window with the list of all its steps.
func TestWindow(t *testing.T) {
	draw := rand.New(rand.NewPCG(8, 1))
	for size := 1; size <= submodules.MostUnderWay; size++ {
		var w submodules.Window
		var all []dag.ID
		for range 3 * submodules.MostUnderWay {
			want := submodules.None
			if len(all) >= size {
				want = all[len(all)-size]
			}
			if got := w.Before(size); got != want || w.Turn(size) != len(all)%size {
				t.Fatalf("size %d, %d steps: the next one waits for %d in turn %d, want %d in turn %d", size, len(all), got, w.Turn(size), want, len(all)%size)
			}
			step := dag.ID(draw.IntN(1000))
			w.Put(size, step)
			all = append(all, step)
		}
	}
}

// Sends wait for the last long one before them, and for no short one.
func TestTurns(t *testing.T) {
	var turns submodules.Turns
	for i, test := range []struct {
		bytes int64
		after dag.ID
	}{
		{submodules.ShortSend, submodules.None},
		{submodules.ShortSend + 1, submodules.None},
		{8, 1},
		{1 << 20, 1},
		{1 << 20, 3},
		{8, 4},
	} {
		if got := turns.Before(); got != test.after {
			t.Errorf("send %d waits for %d, want %d", i, got, test.after)
		}
		turns.Put(dag.ID(i), test.bytes)
	}
}

// Every number differs from 0 in digits that Digits yields, and no value of a digit alone is beyond them.
func TestDigits(t *testing.T) {
	for radix := 2; radix <= 9; radix++ {
		for n := 1; n <= 70; n++ {
			reach, last := 1, 0
			for unit, values := range submodules.Digits(n, radix) {
				if unit != reach || values < 2 || values > radix || (values-1)*unit >= n {
					t.Fatalf("%d numbers, radix %d: a digit worth %d has %d values", n, radix, unit, values)
				}
				reach, last = unit*radix, unit*values
			}
			if n > 1 && last < n || n == 1 && last != 0 {
				t.Fatalf("%d numbers, radix %d: the last digit ends at %d", n, radix, last)
			}
		}
	}
}

func TestPowerOfTwo(t *testing.T) {
	for n := 1; n <= 70; n++ {
		if p := submodules.PowerOfTwo(n); p&(p-1) != 0 || p > n || 2*p <= n {
			t.Errorf("the largest power of two up to %d is not %d", n, p)
		}
	}
}
