package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// pair is an element that no operation combines.
type pair struct {
	From, To int16
	N        int32
}

// block is what one rank gives another one in a round.
func block(round, from, to int) []pair {
	draw := rand.New(rand.NewPCG(uint64(round), uint64(100*from+to)))
	b := make([]pair, draw.IntN(40)*min(1, draw.IntN(3)))
	if round%5 == 3 && from == 1 && to == 2 {
		b = make([]pair, 50_000)
	}
	if round%5 == 4 {
		b = nil // nobody gives anything
	}
	for i := range b {
		b[i] = pair{int16(from), int16(to), int32(i)}
	}
	return b
}

// Blocks of random lengths arrive, those of one rank apart from those of another; some
// ranks may give their counts as flat buffers.
func TestAlltoallBlocks(t *testing.T) {
	onBothKinds(t, 3, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		for round := range 15 {
			if err := gatherBlocks(ctx, c, round); err != nil {
				return err
			}
			out, in := make([][]pair, c.Size()), make([][]pair, c.Size())
			for other := range out {
				out[other], in[other] = block(round, c.Rank(), other), block(round, other, c.Rank())
			}
			if round%2 == 1 && c.Rank() == 1 {
				if err := flat(ctx, c, out, in); err != nil {
					return err
				}
				continue
			}
			got, err := planner.AlltoallBlocks(ctx, c, out)
			if err != nil {
				return err
			}
			for from := range got {
				if !slices.Equal(got[from], in[from]) {
					return fmt.Errorf("round %d: rank %d got %d elements from rank %d, wrong or not the %d wanted", round, c.Rank(), len(got[from]), from, len(in[from]))
				}
				_ = append(got[from], pair{}) // must not touch the next one
			}
		}
		return nil
	})
}

// gatherBlocks collects the blocks for one rank on all ranks, and on that one.
func gatherBlocks(ctx context.Context, c *planner.Comm, round int) error {
	root := round % c.Size()
	all, err := planner.AllgatherBlocks(ctx, c, block(round, c.Rank(), root))
	if err != nil {
		return err
	}
	one, err := planner.GatherBlocks(ctx, c, block(round, c.Rank(), root), root)
	if err != nil {
		return err
	}
	for from := range all {
		if want := block(round, from, root); !slices.Equal(all[from], want) || c.Rank() == root && !slices.Equal(one[from], want) {
			return fmt.Errorf("round %d: rank %d got other blocks of rank %d", round, c.Rank(), from)
		}
		_ = append(all[from], pair{})
	}
	if c.Rank() != root && one != nil {
		return fmt.Errorf("round %d: rank %d got blocks for rank %d", round, c.Rank(), root)
	}
	return nil
}

// flat is the same with Alltoallv.
func flat(ctx context.Context, c *planner.Comm, out, in [][]pair) error {
	send, want := slices.Concat(out...), slices.Concat(in...)
	recv := make([]pair, len(want))
	sends, recvs := make([]int, len(out)), make([]int, len(in))
	for i := range out {
		sends[i], recvs[i] = len(out[i]), len(in[i])
	}
	err := planner.Alltoallv(ctx, c, send, sends, recv, recvs)
	if err == nil && !slices.Equal(recv, want) {
		err = errors.New("flat blocks came wrong")
	}
	return err
}

// What is wrong on one rank is an error on all; the communicator works as before.
func TestAlltoallBlocksArguments(t *testing.T) {
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		blocks := make([][]int, c.Size())
		want := "rank 1 has counts or buffers that can't be"
		if c.Rank() == 1 {
			blocks, want = blocks[:2], fmt.Sprintf("2 blocks to send, for %d ranks", c.Size())
		}
		if _, err := planner.AlltoallBlocks(ctx, c, blocks); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("rank %d: got error %w, want %q", c.Rank(), err, want)
		}
		if _, err := planner.AlltoallBlocks(ctx, c, make([][]string, c.Size())); err == nil || !strings.Contains(err.Error(), "type string") {
			return fmt.Errorf("of strings: got error %w", err)
		}
		for what, err := range map[string]error{
			"type string":                second(planner.AllgatherBlocks(ctx, c, []string{"a"})),
			"root 9: ranks are 0 to":     second(planner.GatherBlocks(ctx, c, []int{1}, 9)),
			"the communicator is nil":    second(planner.GatherBlocks(ctx, nil, []int{1}, 0)),
			"the communicator is nil, 2": second(planner.AllgatherBlocks(ctx, nil, []int{1})),
		} {
			if text, _, _ := strings.Cut(what, ", "); err == nil || !strings.Contains(err.Error(), text) {
				return fmt.Errorf("got error %w, want %q", err, text)
			}
		}
		_, err := planner.AlltoallBlocks(ctx, c, make([][]int, c.Size()))
		return err
	})
}
