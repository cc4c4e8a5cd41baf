package elastic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

// All ranks end with the state of the highest revision, then what most have, then the lowest rank's, and only what differs travels.
func TestSync(t *testing.T) {
	const mib = 1 << 20
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		const n = 4
		a, b := 3*mib+r.IntN(mib), r.IntN(100)
		base := make([]byte, a+b)
		for i := range base {
			base[i] = byte(r.Uint32())
		}
		states, revisions := make([][]byte, n), make([]uint64, n)
		touched := map[int]bool{} // chunks of the first part
		for rank := range n {
			states[rank] = bytes.Clone(base)
			revisions[rank] = uint64(r.IntN(2))
			if r.IntN(2) == 0 {
				at := r.IntN(a)
				states[rank][at] ^= 1
				touched[at/mib] = true
			}
		}
		want := bestOf(states, revisions)
		err := planner.Run(t.Context(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
			mine := states[c.Rank()]
			s, err := elastic.Sync(ctx, c, revisions[c.Rank()], elastic.PartOf("a", mine[:a]), elastic.Part{Name: "b", Data: mine[a:]})
			if err != nil {
				return err
			}
			if s.From != want || s.Revision != revisions[want] || s.Bytes > int64(len(touched)*mib) {
				return fmt.Errorf("%+v; want from %d, at most %d bytes", s, want, len(touched)*mib)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for rank, state := range states {
			if !bytes.Equal(state, states[want]) {
				t.Fatalf("seed %d: rank %d has another state than rank %d", seed, rank, want)
			}
		}
	}
}

// A rank that gets a part of the newest state only, since the one that has it fails, keeps its own: with half of
// each it would count as one that has the newest.
func TestSyncLeavesNothingPartial(t *testing.T) {
	err := planner.Run(t.Context(), "3", nil, func(ctx context.Context, c *planner.Comm) error {
		state := []uint64{1, 10}
		parts := []elastic.Part{elastic.PartOf("step", state[:1]), elastic.PartOf("weights", state[1:])}
		if c.Rank() == 0 { // says that it has the newest, sends the first part of it and fails
			if err := planner.Allgather(ctx, c, elastic.StandingOf(2, parts...), make([]uint64, 9)); err != nil {
				return err
			}
			if err := planner.Bcast(ctx, c, []uint64{7, 8}, 0); err != nil {
				return err
			}
			if err := planner.Allreduce(ctx, c, []uint8{0, 0}, make([]uint8, 2), tasks.Bor); err != nil {
				return err
			}
			if err := planner.Bcast(ctx, c, make([]byte, 8), 0); err != nil {
				return err
			}
			return c.Revoke(errors.New("fails here"))
		}
		if _, err := elastic.Sync(ctx, c, 1, parts...); !planner.Recoverable(err) {
			return fmt.Errorf("with a source that failed: %w", err)
		}
		if !slices.Equal(state, []uint64{1, 10}) {
			return fmt.Errorf("it has %v now", state)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// bestOf is the slow twin of how a source is chosen.
func bestOf(states [][]byte, revisions []uint64) (best int) {
	votes := func(r int) (n int) {
		for o := range states {
			if revisions[o] == revisions[r] && bytes.Equal(states[o], states[r]) {
				n++
			}
		}
		return n
	}
	for r := range states {
		if revisions[r] > revisions[best] || revisions[r] == revisions[best] && votes(r) > votes(best) {
			best = r
		}
	}
	return best
}

// Parts that can't be compared are an error on all ranks.
func TestSyncOfOthers(t *testing.T) {
	err := planner.Run(t.Context(), "3", nil, func(ctx context.Context, c *planner.Comm) error {
		if _, err := elastic.Sync(ctx, c, 0); err != nil {
			return fmt.Errorf("without parts: %w", err)
		}
		if _, err := elastic.Sync(ctx, c, 0, elastic.PartOf("none", []int{})); err != nil {
			return fmt.Errorf("an empty part: %w", err)
		}
		if _, err := elastic.Sync(ctx, c, 0, elastic.PartOf("p", []*int{nil})); err == nil {
			return errors.New("pointers were sent")
		}
		data := make([]byte, 10)
		if c.Rank() == 2 {
			data = data[:9]
		}
		_, err := elastic.Sync(ctx, c, 0, elastic.PartOf("x", data))
		if e, ok := errors.AsType[*elastic.SyncError](err); !ok || e.Rank != 2 {
			return fmt.Errorf("another length: %w", err)
		}
		_, err = elastic.Sync(ctx, c, 0, elastic.PartOf(fmt.Sprint("x", c.Rank()/2), make([]byte, 3)))
		if e, ok := errors.AsType[*elastic.SyncError](err); !ok || e.Rank != 2 {
			return fmt.Errorf("another name: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
