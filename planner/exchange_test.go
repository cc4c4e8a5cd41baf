package planner_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// exchangeLength is the size that all ranks draw for a block between two ranks.
func exchangeLength(seed uint64, round, from, to int) int {
	d := rand.New(rand.NewPCG(seed, uint64(round*1000+from*30+to)))
	return []int{0, 1, 24, 504, 505, 4096, 4097, 70_000}[d.IntN(8)]
}

// exchanged makes the blocks of a rank: what it gives, where it gets, and what should be there.
func exchanged(c *planner.Comm, coll tasks.Collective, root int, length func(from, to int) int) (give, get, want [][]byte) {
	filled := func(from, to int) []byte {
		b := make([]byte, length(from, to))
		for i := range b {
			b[i] = byte(i + 7*from + 31*to)
		}
		return b
	}
	give, get, want = make([][]byte, c.Size()), make([][]byte, c.Size()), make([][]byte, c.Size())
	me := c.Rank()
	for i := range give {
		if coll != tasks.Gather && (coll == tasks.Alltoall || me == root) || coll == tasks.Gather && i == root {
			give[i] = filled(me, i)
		}
		if coll != tasks.Scatter && (coll == tasks.Alltoall || me == root) || coll == tasks.Scatter && i == root {
			want[i] = filled(i, me)
			get[i] = make([]byte, len(want[i]))
		}
	}
	return give, get, want
}

// Blocks of all sizes get where they should though only two ranks know of each, in calls one
// after the other and in several at once.
func TestExchange(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		type under struct {
			x         raw.Pending
			get, want [][]byte
		}
		var started []under
		check := func(what string, get, want [][]byte) error {
			for i := range want {
				if !bytes.Equal(get[i], want[i]) {
					return fmt.Errorf("%s: rank %d's block of %d bytes is wrong", what, i, len(want[i]))
				}
			}
			return nil
		}
		for round := range 12 {
			for _, coll := range []tasks.Collective{tasks.Gather, tasks.Scatter, tasks.Alltoall} {
				root := 0
				if coll != tasks.Alltoall {
					root = round % c.Size()
				}
				give, get, want := exchanged(c, coll, root, func(from, to int) int { return exchangeLength(seed, round, from, to) })
				if round%2 == 0 {
					if err := raw.Exchange(ctx, c, coll, root, give, get); err != nil {
						return err
					}
					if err := check(fmt.Sprint(coll, " ", round), get, want); err != nil {
						return err
					}
					continue
				}
				x, err := raw.StartExchange(ctx, c, coll, root, give, get)
				if err != nil {
					return err
				}
				started = append(started, under{x, get, want})
			}
		}
		for i, s := range started {
			for i%2 == 0 && !s.x.Done() {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if err := s.x.Wait(ctx); err != nil {
				return err
			}
			if err := check(fmt.Sprint("started ", i), s.get, s.want); err != nil {
				return err
			}
		}
		return nil
	})
}

// A block of another size than expected is an error where it should go, and nowhere else.
func TestExchangeOfOtherSizes(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		for _, test := range []struct{ gives, expects int }{{8, 9}, {8, 9000}, {9000, 8}, {9000, 9001}} {
			give, get, _ := exchanged(c, tasks.Gather, 1, func(from, to int) int {
				if from == 2 && c.Rank() == 1 {
					return test.expects
				}
				if from == 2 {
					return test.gives
				}
				return 100 * from
			})
			err := raw.Exchange(ctx, c, tasks.Gather, 1, give, get)
			want := fmt.Sprintf("rank 2 gives rank 1 %d bytes, which expects %d", test.gives, test.expects)
			if c.Rank() == 1 && (err == nil || !strings.Contains(err.Error(), want)) || c.Rank() != 1 && err != nil {
				return fmt.Errorf("error %v, want on rank 1 %q", err, want)
			}
		}
		for _, test := range []struct {
			coll      tasks.Collective
			root, len int
			want      string
		}{
			{tasks.Bcast, 0, 4, "allowed are gather, scatter and alltoall"},
			{tasks.Alltoall, 4, 4, "root 4: ranks are 0 to 3"},
			{tasks.Alltoall, 0, 3, "has 3 blocks to give; it must have one for each of 4 ranks"},
		} {
			err := raw.Exchange(ctx, c, test.coll, test.root, make([][]byte, test.len), make([][]byte, 4))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				return fmt.Errorf("error %v, want %q", err, test.want)
			}
		}
		return nil
	})
}
